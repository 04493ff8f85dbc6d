//! Runs steps natively: `run_steps <INPUT >OUTPUT`. INPUT is JSON with `spec` and `steps`; OUTPUT
//! has the results and the counters, as `tests/studio/run_steps.mjs` has them from the module.

use std::process::ExitCode;

use serde_json::{Value, json};
use ssdlab_studio::{Spec, Twin};
use ssdlab_time::Nanos;

fn main() -> ExitCode {
    match run() {
        Ok(output) => {
            println!("{output}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<Value, String> {
    let input: Value =
        serde_json::from_reader(std::io::stdin()).map_err(|error| error.to_string())?;
    let mut twin = Twin::new(Spec::from_json(&input["spec"].to_string())?)?;
    twin.add_steps(&input["steps"].to_string())?;
    twin.advance(u64::MAX, Nanos::MAX)?;
    let results: Vec<_> = twin.results().iter().map(|result| result.0.clone()).collect();
    Ok(json!({"results": results, "counters": twin.counters()}))
}
