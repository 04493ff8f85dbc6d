//! `Script`: a lesson as blocks of commands with their expected output.

use std::fmt::Write as _;

/// The separator between commands and output.
const SEPARATOR: &str = "----";

/// A lesson: explanations, and blocks of commands.
#[derive(Debug)]
pub struct Script {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    /// Comments and empty lines.
    Text(String),
    Block(Block),
}

/// Commands, a separator, their output, an empty line.
#[derive(Debug)]
struct Block {
    /// The line of the first command, from 1.
    line: usize,
    commands: Vec<String>,
    expected: Vec<String>,
}

impl Block {
    /// The line of the first line of output.
    fn output_line(&self) -> usize {
        self.line + self.commands.len() + 1
    }
}

impl Script {
    /// Parses a lesson; an error begins with its line number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut lines = text.lines().enumerate().peekable();
        while let Some((index, line)) = lines.next() {
            if line.trim().is_empty() || line.starts_with('#') {
                parts.push(Part::Text(line.to_owned()));
                continue;
            }
            let mut commands = vec![line.to_owned()];
            loop {
                match lines.next() {
                    Some((_, SEPARATOR)) => break,
                    Some((_, line)) if !line.is_empty() && !line.starts_with('#') => {
                        commands.push(line.to_owned());
                    }
                    _ => {
                        return Err(format!(
                            "{}: no line {SEPARATOR} after the commands",
                            index + 1
                        ));
                    }
                }
            }
            let mut expected = Vec::new();
            while let Some((_, line)) = lines.next_if(|(_, line)| !line.is_empty()) {
                expected.push(line.to_owned());
            }
            parts.push(Part::Block(Block { line: index + 1, commands, expected }));
        }
        let script = Self { parts };
        if script.blocks().next().is_none() {
            return Err("1: the lesson has no commands".to_owned());
        }
        Ok(script)
    }

    /// Runs all commands in order; returns the output of each block. An error begins with the line
    /// number of the command.
    pub fn run(
        &self,
        mut execute: impl FnMut(&str) -> Result<Vec<String>, String>,
    ) -> Result<Vec<Vec<String>>, String> {
        self.blocks()
            .map(|block| {
                let mut output = Vec::new();
                for (index, command) in block.commands.iter().enumerate() {
                    let line = block.line + index;
                    output.extend(
                        execute(command).map_err(|error| format!("{line}: {command}: {error}"))?,
                    );
                }
                Ok(output)
            })
            .collect()
    }

    /// The lesson's text with this output.
    pub fn with_output(&self, outputs: &[Vec<String>]) -> String {
        let mut outputs = outputs.iter();
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(line) => writeln!(text, "{line}").unwrap(),
                Part::Block(block) => {
                    let output = outputs.next().expect("each block was run");
                    for line in block.commands.iter().chain([&SEPARATOR.to_owned()]).chain(output) {
                        writeln!(text, "{line}").unwrap();
                    }
                }
            }
        }
        text
    }

    /// The differences between actual and expected output: file, line, both texts.
    pub fn differences(&self, name: &str, outputs: &[Vec<String>]) -> String {
        let mut text = String::new();
        for (block, output) in self.blocks().zip(outputs) {
            if block.expected == *output {
                continue;
            }
            writeln!(text, "\n{name}:{}", block.output_line()).unwrap();
            for command in &block.commands {
                writeln!(text, "    {command}").unwrap();
            }
            for index in 0..block.expected.len().max(output.len()) {
                match (block.expected.get(index), output.get(index)) {
                    (Some(expected), Some(actual)) if expected == actual => {
                        writeln!(text, "      {actual}").unwrap();
                    }
                    (expected, actual) => {
                        if let Some(line) = expected {
                            writeln!(text, "    - {line}").unwrap();
                        }
                        if let Some(line) = actual {
                            writeln!(text, "    + {line}").unwrap();
                        }
                    }
                }
            }
        }
        text
    }

    fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.parts.iter().filter_map(|part| match part {
            Part::Block(block) => Some(block),
            Part::Text(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Script;

    const TEXT: &str = "# One.\n\nadd 1\nadd 2\n----\n1\n3\n\n# Two.\nadd 3\n----\n6\n";

    fn run(text: &str) -> (Script, Vec<Vec<String>>) {
        let script = Script::parse(text).unwrap();
        let mut sum = 0;
        let output = script.run(|command| {
            sum += command.strip_prefix("add ").ok_or("unknown")?.parse::<u32>().unwrap();
            Ok(vec![sum.to_string()])
        });
        (script, output.unwrap())
    }

    #[test]
    fn a_correct_script_is_rewritten_unchanged() {
        let (script, output) = run(TEXT);
        assert_eq!(script.differences("sum.txt", &output), "");
        assert_eq!(script.with_output(&output), TEXT);
    }

    #[test]
    fn a_difference_names_file_and_line_and_shows_both_texts() {
        let wrong = TEXT.replace("\n3\n\n", "\n4\n5\n\n");
        let (script, output) = run(&wrong);
        let shown = "\nsum.txt:6\n    add 1\n    add 2\n      1\n    - 4\n    + 3\n    - 5\n";
        assert_eq!(script.differences("sum.txt", &output), shown);
        assert_eq!(script.with_output(&output), TEXT);
    }

    #[test]
    fn an_error_begins_with_the_line_of_its_command() {
        let error = Script::parse("# One.\nadd 1\n\n").unwrap_err();
        assert!(error.starts_with("2: no line ----"), "{error}");
        assert!(Script::parse("# One.\n").is_err(), "a lesson needs commands");
        let script = Script::parse("add 1\nadd 2\n----\n").unwrap();
        let fail = |command: &str| match command {
            "add 1" => Ok(Vec::new()),
            _ => Err("unknown".to_owned()),
        };
        assert_eq!(script.run(fail).unwrap_err(), "2: add 2: unknown");
    }
}
