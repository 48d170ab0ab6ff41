//! The `trapline` command: everything is in the library.

fn main() -> std::process::ExitCode {
    trapline::cli::main()
}
