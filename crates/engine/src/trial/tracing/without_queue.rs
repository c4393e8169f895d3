//! What the time of a device stands for that has no queue of requests.

use iolab_workload::stages::CarriedBy;

/// In words, by what carries the requests out.
pub(super) fn note(carried_by: CarriedBy) -> &'static str {
    match carried_by {
        CarriedBy::Disk => {
            "the device has no queue of requests: its time begins when it is given the request"
        }
        CarriedBy::Layers => {
            "the device's time is that of the layers of this machine (device mapper, md) and the disks below them, and begins when the uppermost is given the request"
        }
        CarriedBy::Server => {
            "the device's time is that of the server of the file system (FUSE), which has no queue that shows"
        }
        CarriedBy::FileServer => {
            "the device's time is that of the file server and the network (NFS), which have no queue that shows"
        }
        CarriedBy::Both => {
            "the device's time is that of disks and of servers of file systems, of which not all have a queue that shows"
        }
    }
}
