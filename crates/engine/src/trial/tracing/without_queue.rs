//! Notes on the meaning of device time for devices without a queue of requests.

use iolab_workload::stages::CarriedBy;

/// The note for this carrier of requests.
pub(super) fn note(carried_by: CarriedBy) -> &'static str {
    match carried_by {
        CarriedBy::Disk => {
            "the device has no queue of requests: its time begins when it is given the request"
        }
        CarriedBy::Layers => {
            "device time covers the layers of this machine (device mapper, md) and the disks below them; it begins when the uppermost layer is given the request"
        }
        CarriedBy::Server => {
            "device time is the time of the file system's server (FUSE), whose queue is not visible"
        }
        CarriedBy::FileServer => {
            "device time covers the file server and the network (NFS), whose queues are not visible"
        }
        CarriedBy::Both => {
            "device time covers disks and servers of file systems; not all have a visible queue"
        }
    }
}
