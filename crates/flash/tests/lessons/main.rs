//! Lessons on flash translation layers: scripts whose output is checked against the twin.
//!
//! How to read, run and update them: `docs/lessons.md`.

mod interpreter;
mod script;
mod show;

use std::path::{Path, PathBuf};

use interpreter::Interpreter;
use script::Script;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lessons")
}

/// Runs a lesson and compares its output; with UPDATE=1 in the environment, updates the lesson.
fn run_lesson(name: &str) {
    let path = folder().join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let script = Script::parse(&text).unwrap_or_else(|error| panic!("{name}:{error}"));
    let mut interpreter = Interpreter::default();
    let output = script.run(|command| interpreter.run(command));
    let output = output.unwrap_or_else(|error| panic!("{name}:{error}"));
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(&path, script.with_output(&output)).unwrap();
        return;
    }
    let differences = script.differences(name, &output);
    let hint = "(- lesson, + twin; if the twin is right, run again with UPDATE=1)";
    assert!(differences.is_empty(), "the output differs {hint}\n{differences}");
}

#[test]
fn a_sequentially_written_file_needs_one_sense_per_page() {
    run_lesson("01-fresh.txt");
}

#[test]
fn random_overwrites_scatter_a_file_and_a_sequential_rewrite_restores_it() {
    run_lesson("02-ageing.txt");
}

#[test]
fn collection_moves_valid_units_and_spare_reduces_their_number() {
    run_lesson("03-collection.txt");
}

#[test]
fn trimmed_units_are_never_moved() {
    run_lesson("04-trim.txt");
}

#[test]
fn a_write_completes_in_the_buffer_and_a_flush_waits_for_flash() {
    run_lesson("05-buffer-and-flush.txt");
}

#[test]
fn each_policy_chooses_a_different_victim() {
    run_lesson("06-policies.txt");
}

#[test]
fn wear_levelling_spreads_erases_to_blocks_with_cold_data() {
    run_lesson("07-wear.txt");
}

#[test]
fn read_ahead_hides_senses_until_a_scattered_unit() {
    run_lesson("08-read-ahead.txt");
}

#[test]
fn every_lesson_in_the_folder_has_a_test() {
    let source = include_str!("main.rs");
    let paths = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let lessons = paths.filter(|path| path.extension().is_some_and(|suffix| suffix == "txt"));
    let names = lessons.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    let missing: Vec<String> =
        names.filter(|name| !source.contains(&format!("run_lesson(\"{name}\")"))).collect();
    assert!(missing.is_empty(), "no test runs {missing:?}");
}

#[test]
fn a_power_cut_loses_unflushed_writes_and_flushed_ones_if_flushes_are_ignored() {
    run_lesson("09-power-cut.txt");
}

#[test]
fn an_slc_cache_is_fast_until_it_is_full_and_is_folded_in_idle_time() {
    run_lesson("10-slc-cache.txt");
}

#[test]
fn streams_separate_data_by_lifetime_so_that_collection_moves_less() {
    run_lesson("11-streams.txt");
}

#[test]
fn hints_place_a_file_on_alternating_dies_until_a_die_is_full() {
    run_lesson("12-hints.txt");
}

#[test]
fn a_portion_with_a_scattered_unit_waits_for_the_previous_one() {
    run_lesson("13-portions.txt");
}
