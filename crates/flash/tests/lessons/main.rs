//! Lessons on flash translation layers: scripts whose output is checked against the twin.
//!
//! How to read, run and update them: `docs/lessons.md`.

mod interpreter;
mod script;
mod show;

use std::path::{Path, PathBuf};

use interpreter::Interpreter;
use script::Script;

/// Runs a lesson; returns the differences from its output. UPDATE=1 in the environment updates it.
fn run_lesson(path: &Path) -> String {
    let name = path.file_name().unwrap().to_string_lossy();
    let text = std::fs::read_to_string(path).unwrap();
    let script = Script::parse(&text).unwrap_or_else(|error| panic!("{name}:{error}"));
    let mut interpreter = Interpreter::default();
    let output = script.run(|command| interpreter.run(command));
    let output = output.unwrap_or_else(|error| panic!("{name}:{error}"));
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(path, script.with_output(&output)).unwrap();
        return String::new();
    }
    script.differences(&name, &output)
}

#[test]
fn the_twin_behaves_as_every_lesson_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lessons");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut lessons: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|suffix| suffix == "txt")).collect();
    lessons.sort();
    assert_eq!(lessons.len(), 13, "{lessons:?}");
    let differences: String = lessons.iter().map(|path| run_lesson(path)).collect();
    let hint = "(- lesson, + twin; if the twin is right, run again with UPDATE=1)";
    assert!(differences.is_empty(), "the output differs {hint}\n{differences}");
}
