//! `mockgpu doctor`: what this machine has, and what follows for tests.

use std::fmt::Write as _;
use std::path::Path;

use nv_abi::{Branch, Node};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Device nodes that exist.
    pub nodes: Vec<String>,
    /// The kernel module's version, where one is loaded.
    pub driver: Option<String>,
    /// Processor features that the interpreter can use.
    pub features: Vec<&'static str>,
    /// Cores.
    pub cores: usize,
    /// Whether kernels' code is compiled where it is executed often, or why not.
    pub compiles: Result<(), &'static str>,
}

impl Machine {
    /// Looks at this machine.
    pub fn look() -> Self {
        let candidates = [Node::Ctl, Node::Uvm].into_iter().chain((0..16).map(Node::Gpu));
        let nodes = candidates.map(|node| node.to_string()).filter(|path| Path::new(path).exists()).collect();
        let version = std::fs::read_to_string("/proc/driver/nvidia/version").ok();
        Self {
            nodes,
            driver: version.as_deref().and_then(module_version).map(str::to_owned),
            features: features(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            compiles: nv_simulator::sm::compiles_here(),
        }
    }
}

/// The version in the first line of `/proc/driver/nvidia/version`: its first word that begins with a number and a dot.
fn module_version(text: &str) -> Option<&str> {
    text.lines().next()?.split_whitespace().find(|word| {
        let mut parts = word.split('.');
        let number =
            |part: Option<&str>| part.is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
        number(parts.next()) && number(parts.next())
    })
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    [
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("fma", std::arch::is_x86_feature_detected!("fma")),
        ("bmi2", std::arch::is_x86_feature_detected!("bmi2")),
        ("f16c", std::arch::is_x86_feature_detected!("f16c")),
        ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
    ]
    .into_iter()
    .filter_map(|(name, found)| found.then_some(name))
    .collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn features() -> Vec<&'static str> {
    Vec::new()
}

/// The findings as text.
pub fn report(machine: &Machine) -> String {
    let mut text = String::new();
    let list = |items: &[String]| if items.is_empty() { "none".to_owned() } else { items.join(" ") };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "device nodes   {}", list(&machine.nodes));
    let _ = match &machine.driver {
        None => writeln!(text, "kernel module  none loaded"),
        Some(version) => match Branch::from_version(version) {
            Some(branch) => writeln!(text, "kernel module  {version}: struct layouts of branch {branch}"),
            None => writeln!(text, "kernel module  {version}: older than any branch known here"),
        },
    };
    let features: Vec<String> = machine.features.iter().map(|name| (*name).to_owned()).collect();
    let _ = writeln!(text, "processor      {} cores; {}", machine.cores, list(&features));
    let _ = match machine.compiles {
        Ok(()) => writeln!(text, "kernels        hot code is compiled"),
        Err(why) => writeln!(text, "kernels        interpreted alone, with the same results: {why}"),
    };
    let gpus =
        machine.nodes.iter().filter(|path| path.strip_prefix("/dev/nvidia").is_some_and(is_number)).count();
    let _ = match gpus {
        0 => writeln!(text, "so             tests run without a card; `--features hw` would find none"),
        n => {
            writeln!(text, "so             `--features hw` can use {n} card{}", if n == 1 { "" } else { "s" })
        }
    };
    text
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modules_version_is_read_from_its_proc_file() {
        let line =
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (x@y)";
        assert_eq!(module_version(line), Some("580.159.04"));
        assert_eq!(module_version("NVRM version: unknown"), None);
    }

    #[test]
    fn a_machine_with_one_card_is_told_so() {
        let nodes = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"].map(str::to_owned).to_vec();
        let (driver, features) = (Some("580.159.04".into()), vec!["avx2"]);
        let text = report(&Machine { nodes, driver, features, cores: 2, compiles: Ok(()) });
        assert!(text.contains("branch 580"), "{text}");
        assert!(text.contains("can use 1 card\n"), "{text}");
        assert!(text.contains("hot code is compiled"), "{text}");
    }

    #[test]
    fn a_machine_without_any_is_told_so() {
        let compiles = Err("the processor has no AVX2");
        let text = report(&Machine { nodes: vec![], driver: None, features: vec![], cores: 1, compiles });
        assert!(text.contains("none loaded") && text.contains("would find none"), "{text}");
        assert!(text.contains("same results: the processor has no AVX2"), "{text}");
    }
}
