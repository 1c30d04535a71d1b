//! Files and directories that are for their owner only: clusters, keys, tokens, kubeconfigs.
//!
//! They are made with the right mode, never made first and closed later. What is there already with
//! a wider mode is closed, through the same open file that was looked at, before a secret goes in.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

/// How many symbolic links may follow one another, as on Linux.
const MAX_LINKS: usize = 40;

/// Makes a directory, or closes the one that is there. `ours` are the names of what it is for: one
/// that has anything else in it serves others, too, and is not closed behind their backs.
pub fn directory(path: &Path, ours: &[&str]) -> Result<()> {
    let shown = path.display();
    create_directory(path)?;
    let opened = File::open(path).with_context(|| format!("cannot open {shown}"))?;
    let metadata = opened.metadata().with_context(|| format!("cannot look at {shown}"))?;
    ensure!(metadata.is_dir(), "{shown} is no directory");
    modes::refuse_foreign(&metadata, path)?;
    if !modes::is_open_to_others(&metadata) {
        return Ok(());
    }
    for entry in fs::read_dir(path).with_context(|| format!("cannot read {shown}"))? {
        let name = entry.with_context(|| format!("cannot read {shown}"))?.file_name();
        ensure!(
            ours.iter().any(|known| name == *known),
            "others may look into {shown}, and it cannot be closed to them, because it has more in \
             it than picokube's data ({}): give a directory of its own, for example {}",
            name.display(),
            path.join("picokube").display()
        );
    }
    modes::close(&opened, path)
}

/// Makes a directory that only its owner may look into. One that is there stays as it is.
pub fn create_directory(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    modes::make_private(&mut builder);
    builder.create(path).with_context(|| format!("cannot make the directory {}", path.display()))
}

/// Has the disk keep which files a directory has. Where directories cannot be opened, it is up to the system.
pub fn sync_directory(path: &Path) -> Result<()> {
    #[cfg(unix)]
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .with_context(|| format!("cannot write to {}", path.display()))?;
    Ok(())
}

/// Opens a file in a directory of ours for reading and writing; makes it if it is not there.
pub fn open(path: &Path) -> Result<File> {
    let shown = path.display();
    // Nobody else can put a link here any more, but somebody may have while others had access.
    let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    ensure!(
        !is_link,
        "{shown} is a symbolic link, and the cluster would go where it leads: put the file itself \
         here, or give --data the directory that it is in"
    );
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    modes::make_private(&mut options);
    let file = options.open(path).with_context(|| format!("cannot open {shown}"))?;
    let metadata = file.metadata().with_context(|| format!("cannot look at {shown}"))?;
    ensure!(metadata.is_file(), "{shown} is no file");
    modes::refuse_foreign(&metadata, path)?;
    modes::close(&file, path)?;
    Ok(file)
}

/// Reads a secret. A file of ours that others can read is closed first; the modes of other people's
/// files are their business.
pub fn read(path: &Path) -> Result<String> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
    let metadata = file.metadata().with_context(|| format!("cannot look at {shown}"))?;
    if modes::is_own(&metadata) && metadata.is_file() {
        modes::close(&file, path)?;
    }
    io::read_to_string(file).with_context(|| format!("cannot read {shown}"))
}

/// Writes a secret.
///
/// It goes into a new file that takes the place of the old one, so that nobody who has opened that
/// sees it, and nobody ever sees half of it. A link stays: what it leads to is replaced. Pipes,
/// terminals and the like are written to as they are.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let written = match fs::metadata(path) {
        Ok(found) if found.is_dir() => bail!("cannot write {}: it is a directory", path.display()),
        Ok(found) if modes::is_standard_output(&found) => print(text),
        Ok(found) if !found.is_file() => {
            OpenOptions::new().write(true).open(path).and_then(|mut f| f.write_all(text.as_bytes()))
        }
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => replace(&end_of_links(path), text),
    };
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// What else goes to standard output must neither overwrite it nor get in between.
fn print(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    // Such files are made for their owner only, under a name that nobody else can have taken.
    let mut file = tempfile::Builder::new().prefix(".picokube-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Where a file is, or would be made.
fn end_of_links(path: &Path) -> PathBuf {
    let mut end = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&end) else { break };
        end = end.parent().unwrap_or(Path::new("")).join(target);
    }
    end
}

/// Owners and modes.
#[cfg(unix)]
mod modes {
    use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
    use std::os::fd::AsFd;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
    use std::path::Path;

    use anyhow::{Context, Result, bail};

    /// All that a group and others may be granted.
    const OTHERS: u32 = 0o077;

    pub(super) trait Maker {
        fn set_mode(&mut self);
    }

    impl Maker for DirBuilder {
        fn set_mode(&mut self) {
            self.mode(0o700);
        }
    }

    impl Maker for OpenOptions {
        fn set_mode(&mut self) {
            self.mode(0o600);
        }
    }

    pub(super) fn make_private(maker: &mut impl Maker) {
        maker.set_mode();
    }

    pub(super) fn is_open_to_others(metadata: &Metadata) -> bool {
        metadata.mode() & OTHERS != 0
    }

    pub(super) fn is_own(metadata: &Metadata) -> bool {
        metadata.uid() == nix::unistd::geteuid().as_raw()
    }

    /// Whoever owns something can open it again at any time, and replace what is in it.
    pub(super) fn refuse_foreign(metadata: &Metadata, path: &Path) -> Result<()> {
        if is_own(metadata) {
            return Ok(());
        }
        let (shown, own) = (path.display(), nix::unistd::geteuid().as_raw());
        bail!(
            "{shown} belongs to user {}, who could read and replace the cluster, and picokube runs \
             as user {own}: give a directory of your own, or make it yours with `chown {own} {shown}`",
            metadata.uid()
        );
    }

    /// Takes away what a group and others may do.
    pub(super) fn close(file: &File, path: &Path) -> Result<()> {
        let shown = path.display();
        let look = || file.metadata().with_context(|| format!("cannot look at {shown}"));
        let metadata = look()?;
        if !is_open_to_others(&metadata) {
            return Ok(());
        }
        let private = if metadata.is_dir() { 0o700 } else { 0o600 };
        let changed = file.set_permissions(Permissions::from_mode(private));
        // Some file systems know no modes and say nothing about it.
        if changed.is_err() || is_open_to_others(&look()?) {
            let why = changed.err().map(|error| format!(" ({error})")).unwrap_or_default();
            bail!(
                "others may read {shown}, and its mode cannot be changed{why}: give a place on a \
                 file system that has permissions"
            );
        }
        Ok(())
    }

    pub(super) fn is_standard_output(metadata: &Metadata) -> bool {
        let output = std::io::stdout().as_fd().try_clone_to_owned().map(File::from);
        let output = output.and_then(|file| file.metadata());
        output.is_ok_and(|own| (own.dev(), own.ino()) == (metadata.dev(), metadata.ino()))
    }
}

/// Elsewhere, what is in a user's folders is the user's already.
#[cfg(not(unix))]
mod modes {
    use std::fs::{File, Metadata};
    use std::path::Path;

    use anyhow::Result;

    pub(super) fn make_private<T>(_: &mut T) {}

    pub(super) fn is_open_to_others(_: &Metadata) -> bool {
        false
    }

    pub(super) fn is_own(_: &Metadata) -> bool {
        true
    }

    pub(super) fn refuse_foreign(_: &Metadata, _: &Path) -> Result<()> {
        Ok(())
    }

    pub(super) fn close(_: &File, _: &Path) -> Result<()> {
        Ok(())
    }

    pub(super) fn is_standard_output(_: &Metadata) -> bool {
        false
    }
}
