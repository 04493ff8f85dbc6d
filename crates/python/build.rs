//! Passes the git commit and the target of this build to the native module.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    let target = env::var("TARGET").expect("cargo sets TARGET for build scripts");
    println!("cargo::rustc-env=SSDLAB_TARGET={target}");
    println!("cargo::rustc-env=SSDLAB_COMMIT={}", commit().unwrap_or_default());
    // The mark of uncommitted changes depends on the sources of all crates.
    println!("cargo::rerun-if-changed=..");
    println!("cargo::rerun-if-env-changed=SSDLAB_COMMIT");
    // The log of HEAD changes with each commit and each checkout.
    if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])
        && Path::new(&log).exists()
    {
        println!("cargo::rerun-if-changed={log}");
    }
}

/// The commit, with `+` if files differ from it: from the environment (a package build sets it), or
/// from git. None outside a checkout of ssdlab, such as in an unpacked source archive.
fn commit() -> Option<String> {
    if let Ok(given) = env::var("SSDLAB_COMMIT") {
        return Some(given);
    }
    // A source archive may lie in a checkout of something else.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { commit } else { commit + "+" })
}

/// What git prints, without the line's end; None if git is missing or refuses.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
