//! Parameter files in DiskSim's form: what they say arrives in the definition.

use iolab_diskmodel::definition::disk::{Policy, ReadAhead, Seek, Sparing, TrackOrder, WriteBack};
use iolab_diskmodel::definition::disksim::{Files, import};

const MODEL: &str = r#"
dm_disk A_DRIVE { # a comment
   Number of data surfaces = 4,
   Number of cylinders = 100,
   Block count = 12345,
   Layout Model = dm_layout_g1 {
      LBN-to-PBN mapping scheme = 1,
      Sparing scheme used = 8,
      Rangesize for sparing = 5,
      Zones = [
         dm_layout_g1_zone { # outermost
            First cylinder number = 0, Last cylinder number = 49,
            Blocks per track = 20,
            Offset of first block = 3.000000,
            Empty space at zone front = 7,
            Skew for track switch = 4.9,
            Skew for cylinder switch = 6.0,
            Number of spares = 2,
            slips = [ 11, 12 ],
            defects = [ 30, 399, 31, 31 ]
         }, # end of zone
         dm_layout_g1_zone {
            First cylinder number = 50, Last cylinder number = 100,
            Skew units = revolutions,
            Blocks per track = 10,
            Offset of first block = 0.25,
            Skew for track switch = 0.5,
            Number of spares = 0,
            slips = [], defects = []
         }
      ]
   },
   Mechanical Model = dm_mech_g1 {
      Access time type = trackSwitchPlusRotation,
      Seek type = extracted,
      Full seek curve = a.seek,
#      First ten seek times = [ 1.0, 2.0 ],
      Add. write settling delay = -0.25,
      Head switch time = 0.75,
      Rotation speed (in rpms) = 5400,
      Percent error in rpms = 0.0
   }
}
"#;

const SPECS: &str = r#"
disksim_disk A_DRIVE_validate {
   Model = source a.model,
   Per-request overhead time = 0.1,
   Time scale for overheads = 2.0,
   Bulk sector transfer time = 0.05,
   Hold bus entire read xfer = 1,
   Allow sneaky full read hits = 1,
   Allow sneaky partial read hits = 1,
   Preseeking level = 2,
   Max queue length = 4,
   Scheduler = disksim_ioqueue { Scheduling policy = 4, Timeout time/weight = 0 },
   Number of buffer segments = 3,
   Segment size (in blks) = 64,
   High (read) water mark = 0.5,
   Set watermark by reqsize = 0,
   Enable caching in buffer = 1,
   Buffer continuous read = 4,
   Fast write level = 1,
   Read hit over. after read = 0.3,
   Read hit over. after write = 0.4,
   Extra write disconnect = 1,
   Extradisc command overhead = 0.6
} # end
"#;

const PARV: &str = r#"
disksim_bus BUS0 { type = 1, Read block transfer time = 0.0 }
disksim_bus BUS1 { type = 1, Read block transfer time = 0.17, Write block transfer time = 0.02 }
source a.diskspecs
instantiate [ disk0 ] as A_DRIVE_validate
topology disksim_iodriver driver0 [ disksim_bus bus0 [ ] ]
"#;

fn files() -> Files<'static> {
    Files {
        model: MODEL,
        seek: Some("Seek distances measured: 2\n1,\t1.5\n10, 3.5, 0.1\n"),
        diskspecs: SPECS,
        parv: Some(PARV),
    }
}

#[test]
fn what_the_files_say_arrives() {
    let imported = import(&files()).unwrap();
    let disk = imported.disk;
    let geometry = &disk.geometry;
    assert_eq!((geometry.surfaces, geometry.range), (4, 5));
    // The last zone ends behind the number of cylinders in the file.
    assert_eq!(geometry.cylinders, 101);
    assert_eq!(
        (geometry.order, geometry.spares),
        (TrackOrder::SerpentineZone, Sparing::Range)
    );
    let zone = &geometry.zone[0];
    assert_eq!(
        (zone.cylinders, zone.sectors, zone.reserved, zone.spares),
        ([0, 49], 20, 7, 2)
    );
    // Skews in sectors are whole ones; a defect that is its own replacement is none.
    assert_eq!(
        (zone.offset, zone.track_skew, zone.cylinder_skew),
        (3.0, 4.0, 6.0)
    );
    assert_eq!(
        (zone.slips.as_slice(), zone.defects.as_slice()),
        (&[11, 12][..], &[[30, 399]][..])
    );
    assert_eq!(
        (geometry.zone[1].offset, geometry.zone[1].track_skew),
        (2.5, 5.0)
    );
    assert_eq!(
        disk.mechanics.seek,
        Seek::Measured(vec![[1.0, 1.5], [10.0, 3.5]])
    );
    assert_eq!(
        (
            disk.mechanics.write_settle_ms, disk.mechanics.head_switch_ms
        ),
        (-0.25, 0.75)
    );
    assert_eq!(
        (
            disk.bus.read_block_ms, disk.bus.write_block_ms, disk.bus.hold_reads
        ),
        (0.17, 0.05, true)
    );
    assert_eq!(
        (
            disk.overhead.request, disk.overhead.scale, disk.overhead.read_hit
        ),
        (0.1, 2.0, [0.3, 0.4])
    );
    assert_eq!(disk.overhead.extra_disconnect.unwrap().command, 0.6);
    assert_eq!(
        (disk.buffer.read_ahead, disk.buffer.write_back),
        (ReadAhead::NextTrack, WriteBack::Sequential)
    );
    assert_eq!(
        (disk.buffer.read_watermark, disk.buffer.watermark_of_request),
        (0.5, false)
    );
    assert_eq!((disk.queue.policy, disk.queue.depth), (Policy::Sptf, 4));
    assert_eq!(
        imported.left_out,
        [
            "Scheduling policy 4: Sptf takes its place",
            "Allow sneaky partial read hits: partial hits while the heads are busy are not modelled",
        ]
    );
}

#[test]
fn files_that_say_too_little_are_refused_with_what_is_missing() {
    let error = |files: Files<'_>| import(&files).unwrap_err();
    assert_eq!(
        error(Files {
            seek: None,
            ..files()
        }),
        "the model needs its seek curve, file a.seek"
    );
    assert_eq!(
        error(Files {
            model: SPECS,
            ..files()
        }),
        "no dm_disk in the file"
    );
    assert_eq!(
        error(Files {
            model: "dm_disk X { a = 1",
            ..files()
        }),
        "a block does not end"
    );
    let g4 = MODEL.replace("dm_layout_g1 {", "dm_layout_g4 {");
    assert_eq!(
        error(Files {
            model: &g4,
            ..files()
        }),
        "layout dm_layout_g4 is not supported; dm_layout_g1 is"
    );
}
