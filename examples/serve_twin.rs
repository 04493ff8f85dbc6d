//! Serves a twin over NBD: `cargo run --release --example serve_twin -- PROFILE SOCKET`.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::{env, fs};

use ssdlab_engine::Engine;
use ssdlab_flash::Profile;
use ssdlab_nbd::Export;
use ssdlab_server::{Address, Server};
use ssdlab_twin_drive::TwinDrive;

fn main() -> ExitCode {
    let Err(error) = serve() else { return ExitCode::SUCCESS };
    let _ = writeln!(io::stderr(), "serve_twin: {error}");
    ExitCode::from(2)
}

fn serve() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [profile, socket] = arguments.as_slice() else {
        return Err("usage: serve_twin PROFILE SOCKET".into());
    };
    let text = fs::read_to_string(profile).map_err(|error| format!("{profile}: {error}"))?;
    let profile = Profile::from_toml(&text)?;
    let engine = Engine::in_memory(TwinDrive::new(&profile, 0));
    let unit = engine.parameters.unit_bytes;
    let export = Export::new("twin", &profile.model, profile.capacity, unit);
    let mut server = Server::new(engine, export);
    let refused = |error| format!("{socket}: {error}");
    server.listen_nbd(&Address::Unix(socket.into())).map_err(refused)?;
    let mut out = io::stdout();
    writeln!(out, "{} at nbd+unix:///twin?socket={socket}; Enter stops the server", profile.model)?;
    io::stdin().read_line(&mut String::new())?;
    for (name, value) in server.engine().counters() {
        writeln!(out, "{name:26} {}", value.map_or("-".into(), |value| value.to_string()))?;
    }
    Ok(())
}
