use std::sync::atomic::{AtomicBool, Ordering};

use super::{create, *};

#[test]
fn names_are_taken_in_order_and_never_twice() {
    let folder = tempfile::tempdir().unwrap();
    let place = NewFile::In {
        folder: folder.path(),
        name: "a",
    };
    std::fs::write(folder.path().join("a-2.iolab"), "mine").unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("a-3.iolab")).unwrap();
    for name in ["a.iolab", "a-4.iolab", "a-5.iolab"] {
        let (path, _file) = create(place, b"content").unwrap();
        assert_eq!(path, folder.path().join(name));
        assert_eq!(std::fs::read(path).unwrap(), b"content");
    }
    let kept = std::fs::read(folder.path().join("a-2.iolab")).unwrap();
    assert_eq!(kept, b"mine");
}

#[test]
fn both_ways_refuse_a_name_that_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (open, name) = (OpenFolder::open(folder.path()).unwrap(), OsStr::new("a"));
    let file = named(&open, name, b"first").unwrap();
    for error in [
        named(&open, name, b"second").unwrap_err(),
        open.link(&file, name).unwrap_err(),
    ] {
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }
    assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), b"first");
}

#[test]
fn many_at_once_get_a_name_each() {
    let folder = tempfile::tempdir().unwrap();
    let place = NewFile::In {
        folder: folder.path(),
        name: "a",
    };
    thread::scope(|scope| {
        for number in 0..8u8 {
            scope.spawn(move || create(place, &[number]).unwrap());
        }
    });
    let mut contents: Vec<Vec<u8>> = (1..=8)
        .map(|number| std::fs::read(place.name(number)).unwrap())
        .collect();
    contents.sort();
    assert_eq!(contents.concat(), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_folder_stays_with_its_file_only() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("a/b");
    let place = NewFile::In {
        folder: &folder,
        name: "r",
    };
    drop(Folder::of(place).unwrap());
    assert!(!above.path().join("a").exists());
    let made = Folder::of(place).unwrap();
    let (path, _file) = create(made.place(place), b"content").unwrap();
    drop(made);
    assert_eq!(path, folder.join("r.iolab"));
    assert!(path.exists());
}

#[test]
fn a_link_that_replaces_the_folder_is_refused() {
    let above = tempfile::tempdir().unwrap();
    let at = |name: &str| above.path().join(name);
    let folder = at("results");
    let place = NewFile::In {
        folder: &folder,
        name: "r",
    };
    let made = Folder::of(place).unwrap();
    std::fs::create_dir(at("other")).unwrap();
    std::fs::rename(&folder, at("moved")).unwrap();
    std::os::unix::fs::symlink("other", &folder).unwrap();
    create(made.place(place), b"content").unwrap();
    assert_eq!(std::fs::read(at("moved/r.iolab")).unwrap(), b"content");
    made.remove(Path::new("r.iolab"));
    for name in ["moved", "other"] {
        assert_eq!(at(name).read_dir().unwrap().count(), 0, "{name}");
    }
}

#[test]
fn a_folder_removed_meanwhile_is_made_again() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("a/b");
    let place = NewFile::In {
        folder: &folder,
        name: "r",
    };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                drop(Folder::of(place));
            }
        });
        let made = (0..200).try_for_each(|_| {
            let folder = Folder::of(place)?;
            let (path, _) = create(folder.place(place), b"content")?;
            std::fs::remove_file(path).unwrap();
            Ok::<_, Error>(())
        });
        is_over.store(true, Ordering::Relaxed);
        made.unwrap();
    });
}

#[test]
fn an_impossible_folder_is_named_leaving_nothing() {
    let above = tempfile::tempdir().unwrap();
    std::fs::write(above.path().join("file"), "mine").unwrap();
    let folder = above.path().join("file/b");
    let place = NewFile::In {
        folder: &folder,
        name: "r",
    };
    let error = Folder::of(place).expect_err("a file is in the way");
    let above_path = above.path().display().to_string();
    insta::assert_snapshot!(error.message().replace(&above_path, "DIR"), @"cannot make the folder DIR/file/b for the run files: File exists (os error 17)");
    assert_eq!(above.path().read_dir().unwrap().count(), 1);
}
