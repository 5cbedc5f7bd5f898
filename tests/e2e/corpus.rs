//! The kernels of `fixtures/corpus`, written to reach every instruction that nvcc is likely to emit, in four builds for three
//! architectures. What they leave is compared between builds, with what the same sources leave when a C++ compiler made host
//! code of them (`fixtures/corpus/host.txt`), and with what they left on an H200 (`fixtures/corpus/h200.txt`).

use std::collections::{BTreeMap, BTreeSet};

use nv_driver::{Device, Module, program::Cubin};
use nv_simulator::profile::Profile;
use tests::{
    Place,
    recipe::{self, Recipe, digest},
};

/// The builds, by how the names of their cubins end.
const BUILDS: [&str; 4] = ["", "_XptxasO1", "_usefastmath", "_G"];

/// What sets builds of a kernel apart that rightly leave different bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Debugging: products and sums are two instructions there, and one elsewhere.
    Debugging,
    /// Fast mathematics: divisions, roots and functions are approximate, and subnormal numbers are zeros.
    FastMathematics,
    /// The architecture.
    Architecture,
    /// Every run.
    Run,
}

/// Kernels whose builds leave different bits, what by, and why. All others leave the same in all of them.
const APART: &[(By, &str, &[&str])] = &[
    (
        By::Debugging,
        "has sums of products",
        &[
            "saxpy",
            "saxpy4",
            "layernorm",
            "attention",
            "blackscholes",
            "fft8",
            "nbody",
            "stencil7",
            "stencil_d",
            "gemv",
            "conv2d3",
            "sgemm128",
            "matmul_tiled",
            "matmul_naive",
            "fset",
            "dtrans",
            "rnarith",
            "fasttrig",
            "trig",
            "bf2",
            "bf",
            "hadd",
        ],
    ),
    (
        By::FastMathematics,
        "has divisions, roots or functions",
        &[
            "silu",
            "gelu",
            "rmsnorm4",
            "layernorm",
            "softmax",
            "attention",
            "blackscholes",
            "mandel",
            "invtrig",
            "explog",
            "trig",
            "virt",
            "indirect",
            "switchk",
        ],
    ),
    (
        By::Architecture,
        "tensor cores of Hopper keep more bits of sums than those before",
        &["hgemm", "mma_ldsm", "wmma_tf32", "wmma_bf16", "wmma_f16f16", "wmma_f16"],
    ),
    (By::Architecture, "multiplies matrices of FP8 from sm_89 on", &["mma_misc"]),
    (By::Architecture, "adds vectors on sm_90 alone", &["v128atom"]),
    (By::Architecture, "has products of BF16 that sm_90 adds in one instruction", &["bf"]),
    (By::Run, "stores clocks", &["clocks"]),
    (By::Run, "stores addresses of a heap", &["mallock"]),
    (By::Run, "stores which thread came first at an atomic", &["atoms_s"]),
    (By::Run, "has blocks that read what others write", &["gridsync"]),
];

/// Kernels that count steps until a condition holds, which comes sooner or later under fast mathematics.
const STEPS: [&str; 1] = ["mandel 0"];

/// Launches whose results are another on the host, and why.
const NOT_AS_ON_HOST: &[(&str, &str)] = &[
    ("mulwide 0", "threads read what others write"),
    ("syncwarps 0", "threads read what others write"),
    ("atoms_s 0", "stores which thread came first at an atomic"),
    ("cvt 0", "converts numbers that are too large, which C++ does not define"),
];

/// How far approximate numbers may be from the host's, as a part of the largest of them: a few units in the last place of each
/// format, times the length of the sums.
const NEAR: [(&str, f64); 4] = [("f64", 1e-13), ("f32", 2e-5), ("f16", 4e-3), ("bf16", 3e-2)];
/// The same of single precision under fast mathematics.
const NEAR_UNDER_FAST_MATHEMATICS: f64 = 2e-3;

/// The architectures, each with a GPU that runs its code.
fn places() -> [(&'static str, Profile); 3] {
    [("sm_80", Profile::ga102()), ("sm_89", Profile::ad102()), ("sm_90", Profile::h200())]
}

/// What a launch left in each buffer.
type Left = Vec<Vec<u32>>;

/// What the host says of a buffer.
struct Known {
    digests: Vec<u64>,
    /// A format, how far numbers are from each other, and the numbers, where bits are not the same.
    numbers: Option<(String, usize, Vec<f64>)>,
}

/// The rows of `host.txt`, by kernel or file and the number of the launch.
fn host() -> BTreeMap<String, Vec<Known>> {
    let known = |word: &str| {
        let mut parts = word.split(':');
        let digests = parts.next().unwrap().split('/').map(|digest| u64::from_str_radix(digest, 16).unwrap());
        let digests = digests.collect();
        let numbers = parts.next().filter(|kind| *kind != "inexact").map(|kind| {
            let step = parts.next().unwrap().parse().unwrap();
            (kind.to_owned(), step, parts.map(|number| number.parse().unwrap()).collect())
        });
        Known { digests, numbers }
    };
    let text = fixtures::text("corpus/host.txt").unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (head, buffers) = line.match_indices(' ').nth(1).map_or((line, ""), |(at, _)| line.split_at(at));
        (head.to_owned(), buffers.split_whitespace().map(known).collect())
    });
    rows.collect()
}

/// The digests of `h200.txt`, by build and launch.
fn h200() -> BTreeMap<(String, String), Vec<u64>> {
    let text = fixtures::text("corpus/h200.txt").unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut words = line.split(' ');
        let (file, kernel, number) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let digest = |word: &str| u64::from_str_radix(word.split(':').next().unwrap(), 16).unwrap();
        ((build(file).to_owned(), format!("{kernel} {number}")), words.map(digest).collect())
    });
    rows.collect()
}

/// The build of a file, by how its name ends.
fn build(file: &str) -> &'static str {
    BUILDS.iter().rev().find(|build| file.ends_with(**build)).unwrap()
}

/// The number that begins there.
fn number(words: &[u32], kind: &str, at: usize) -> f64 {
    let half = |at: usize| words[at / 2] >> (16 * (at % 2)) & 0xffff;
    match kind {
        "f64" => f64::from_bits(u64::from(words[2 * at]) | u64::from(words[2 * at + 1]) << 32),
        "f32" => f32::from_bits(words[at]).into(),
        "bf16" => f32::from_bits(half(at) << 16).into(),
        _ => fixtures::reference::half_value(half(at) as u16),
    }
}

/// Compares with the host, and says whether all bits were the same.
fn compare(name: &str, left: &Left, known: &[Known], fast: bool) -> bool {
    assert_eq!(left.len(), known.len(), "{name}: buffers");
    let mut exact = true;
    for (buffer, (words, known)) in left.iter().zip(known).enumerate() {
        if known.digests.contains(&digest(words)) {
            continue;
        }
        exact = false;
        let Some((kind, step, numbers)) = &known.numbers else {
            panic!(
                "{name}: buffer {buffer} has {:016x}: {:x?}",
                digest(words),
                &words[..words.len().min(16)]
            );
        };
        let (_, near) = NEAR.iter().find(|(own, _)| own == kind).unwrap();
        let near = if fast { near.max(NEAR_UNDER_FAST_MATHEMATICS) } else { *near };
        let largest =
            numbers.iter().filter(|number| number.is_finite()).fold(0f64, |all, x| all.max(x.abs()));
        for (index, expected) in numbers.iter().enumerate() {
            let found = number(words, kind, index * step);
            let same = found == *expected
                || found.is_nan() && expected.is_nan()
                || (found - expected).abs() <= near * largest.min(expected.abs().max(1.0) * 16.0);
            assert!(same, "{name}: buffer {buffer}, number {}: {found}, not {expected}", index * step);
        }
    }
    exact
}

/// The launches of a cubin's kernels, under way.
struct UnderWay {
    cubin: String,
    /// Stays loaded until they are over.
    _module: Module,
    launches: Vec<(String, recipe::Launched)>,
}

impl UnderWay {
    /// Launches every kernel of a cubin, as often as there are recipes for it.
    fn start(device: &Device, name: &str, cubin: &[u8], recipes: &BTreeMap<String, Vec<Recipe>>) -> Self {
        let module = Module::load(device, cubin).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut launches = Vec::new();
        for info in Cubin::parse(cubin).unwrap().kernels() {
            let recipes = recipes.get(name).or_else(|| recipes.get(&info.name));
            let recipes = recipes.unwrap_or_else(|| panic!("{name}: nothing launches {}", info.name));
            for (number, recipe) in recipes.iter().enumerate() {
                let launched = module
                    .kernel(&info.name)
                    .and_then(|kernel| recipe::launch(device, &kernel, recipe))
                    .unwrap_or_else(|error| panic!("{} of {name}: {error}", info.name));
                launches.push((format!("{} {number}", info.name), launched));
            }
        }
        Self { cubin: name.to_owned(), _module: module, launches }
    }

    /// What they left, by name and number of the launch.
    fn finish(self) -> impl Iterator<Item = (String, Left)> {
        self.launches.into_iter().map(move |(launch, launched)| {
            let left = launched.read().unwrap_or_else(|error| panic!("{launch} of {}: {error}", self.cubin));
            (launch, left.into_iter().map(|(_, after)| after).collect())
        })
    }
}

/// What every kernel leaves in every build for an architecture, by build and launch.
fn builds(place: &Place, arch: &str, files: &[(String, Vec<u8>)]) -> BTreeMap<(String, String), Left> {
    let text = fixtures::text("corpus/launches.txt").unwrap();
    let recipes = recipe::recipes(&text).unwrap();
    let device = place.device(0);
    device.print_to(std::io::sink());
    let mut all = BTreeMap::new();
    for (file, cubin) in files.iter().filter(|(name, _)| name.starts_with(arch)) {
        let stem = file.rsplit('/').next().unwrap().trim_end_matches(".cubin");
        for (launch, left) in UnderWay::start(&device, stem, cubin, &recipes).finish() {
            all.insert((build(stem).to_owned(), launch), left);
        }
    }
    all
}

/// What sets a build of a launch apart from others.
fn group(launch: &str, arch: &str, build: &str) -> Option<Vec<String>> {
    let kernel = launch.split(' ').next().unwrap();
    let apart: Vec<By> =
        APART.iter().filter(|(_, _, kernels)| kernels.contains(&kernel)).map(|(by, _, _)| *by).collect();
    let group = apart.iter().map(|by| match by {
        By::Debugging => Some((build == "_G").to_string()),
        By::FastMathematics => Some((build == "_usefastmath").to_string()),
        By::Architecture => Some(arch.to_owned()),
        By::Run => None,
    });
    group.collect()
}

#[test]
fn every_build_of_every_kernel_leaves_what_the_others_the_host_and_an_h200_do() {
    let files = fixtures::pack::read("corpus_cubins").unwrap();
    let all: Vec<_> = std::thread::scope(|scope| {
        let files = &files;
        let run = |(arch, profile): (&'static str, Profile)| {
            scope.spawn(move || {
                let mut all = BTreeMap::new();
                Place::simulated(arch, &[profile]).run(|place| all = builds(place, arch, files));
                (arch, all)
            })
        };
        let threads = places().map(run);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (host, mut h200) = (host(), h200());
    let mut groups: BTreeMap<(String, Vec<String>), (String, Left)> = BTreeMap::new();
    let (mut launches, mut compared, mut exact) = (0, BTreeSet::new(), BTreeSet::new());
    for (arch, left) in all {
        for ((build, launch), left) in left {
            launches += 1;
            let name = format!("{launch} of {arch}{build}");
            let on_card = if arch == "sm_90" { h200.remove(&(build.clone(), launch.clone())) } else { None };
            assert_eq!(on_card.is_some(), arch == "sm_90", "{name} on an H200");
            let Some(group) = group(&launch, arch, &build) else { continue };
            if let Some(on_card) = on_card {
                let digests: Vec<u64> = left.iter().map(|words| digest(words)).collect();
                assert_eq!(digests, on_card, "{name} on an H200");
            }
            let fast = build == "_usefastmath";
            if let Some(known) = host.get(&launch)
                && !(fast && STEPS.contains(&launch.as_str()))
                && !NOT_AS_ON_HOST.iter().any(|(own, _)| *own == launch)
            {
                let same = compare(&name, &left, known, fast);
                if same && build == "_G" {
                    exact.insert(launch.clone());
                }
                compared.insert(launch.clone());
            }
            let (first, common) =
                groups.entry((launch, group)).or_insert_with(|| (name.clone(), left.clone()));
            assert!(*common == left, "{name} leaves something else than {first}");
        }
    }
    println!(
        "{launches} launches, {} compared with the host, {} the same in their -G build",
        compared.len(),
        exact.len()
    );
    assert!(h200.is_empty(), "no such launches: {h200:?}");
    // 143 launches in four builds, of which one lacks 24, for each architecture.
    assert_eq!(launches, 3 * (4 * 143 - 24));
    assert!(compared.len() > 90 && exact.len() > 60, "{} compared, {} exact", compared.len(), exact.len());
}

/// A card leaves what the simulated GPU of its architecture does, but for what is another in every run.
#[cfg(feature = "hw")]
#[test]
fn on_card() {
    let Some(card) = Place::card() else { return };
    let arch = card.code_for(&card.device(0));
    let Some((_, profile)) = places().into_iter().find(|(own, _)| *own == arch) else {
        tests::skip(&format!("there is no corpus for {arch}"));
        return;
    };
    let files = fixtures::pack::read("corpus_cubins").unwrap();
    let mut simulated = BTreeMap::new();
    Place::simulated(arch, &[profile]).run(|place| simulated = builds(place, arch, &files));
    card.run(|place| {
        let mut differ = Vec::new();
        for ((build, launch), left) in builds(place, arch, &files) {
            if group(&launch, arch, &build).is_some() && simulated[&(build.clone(), launch.clone())] != left {
                differ.push(format!("{launch} of {arch}{build}"));
            }
        }
        assert!(differ.is_empty(), "{differ:#?}");
    });
}
