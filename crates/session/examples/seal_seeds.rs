//! Writes the seeds of the fuzz target `seal` into a folder: `seal_seeds FOLDER`.

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1) else {
        return Err(std::io::Error::other("name the folder that the seeds go into"));
    };
    std::fs::create_dir_all(&folder)?;
    for (name, bytes) in farline_session::fuzz::seal_seeds() {
        std::fs::write(std::path::Path::new(&folder).join(name), bytes)?;
    }
    Ok(())
}
