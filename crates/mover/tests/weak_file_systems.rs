//! Copies to file systems that are weaker than a disk of Linux: what they cannot do is found out, and the content arrives.

mod common;
#[path = "../examples/weak_fs/fs.rs"]
mod weak;

use std::fs;
use std::path::Path;

use common::Weather;
use common::pair::{Ended, copy};
use farline_spec::CopySpec;

/// A source with some of everything, a weak destination, and whoever holds the mount.
struct Place {
    source: tempfile::TempDir,
    mounted: Option<fuser::BackgroundSession>,
    destination: tempfile::TempDir,
}

impl Place {
    fn new(words: &str) -> Self {
        let (source, destination) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(source.path().join("small"), "small").unwrap();
        fs::write(source.path().join("empty"), "").unwrap();
        fs::create_dir(source.path().join("folder")).unwrap();
        fs::write(source.path().join("folder/large"), vec![7; 3 << 20]).unwrap();
        let mounted = Some(weak::mount(destination.path(), words).expect("a mount, which needs /dev/fuse"));
        Self {
            source,
            mounted,
            destination,
        }
    }

    fn spec(&self) -> CopySpec {
        CopySpec {
            sources: vec![format!("{}/", self.source.path().display())],
            destination: format!("{}/to/", self.destination.path().display()),
            ..CopySpec::default()
        }
    }

    fn copy(&self, spec: &CopySpec) -> Ended {
        copy(spec, 2, &Weather::fair())
    }

    fn to(&self, name: &str) -> std::path::PathBuf {
        self.destination.path().join("to").join(name)
    }

    fn assert_content(&self) {
        for name in ["small", "empty", "folder/large"] {
            assert_eq!(
                fs::read(self.source.path().join(name)).unwrap(),
                fs::read(self.to(name)).unwrap()
            );
        }
        assert!(
            !self.to(".farline-partial").exists(),
            "nothing is left beside the files"
        );
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Unmounted before the folder that it is mounted at goes.
        drop(self.mounted.take());
    }
}

#[test]
fn nothing_is_left_where_an_unlinked_open_file_lives_on_under_another_name() {
    let place = Place::new("hides");
    place.copy(&place.spec()).assert_well();
    place.assert_content();
    let again = place.copy(&place.spec());
    again.assert_well();
    assert_eq!(again.received.present.files, 3);
    assert!(!Path::new(&place.to(".farline-partial")).exists());
}
