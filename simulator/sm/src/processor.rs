//! The SMs of one GPU: blocks over workers.
//!
//! A worker runs one block at a time, which keeps its registers in the nearest cache. It brings in another only when
//! the present ones have used up a long turn, which a block that waits for others does sooner, and only as many as the
//! GPU would have resident. So blocks that wait for each other finish wherever they would on the card.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::block::Block;
use super::code::CodeCache;
use super::fault::{Fault, FaultKind};
use super::launch::{Launch, Prepared, Statistics};
use super::micro::Features;
use super::pool::{self, Job};
use super::profile::{Counting, Observe, Observed, Ran};
use super::worker::{Outcome, Random, Worker};
use nv_memory::AddressMap;

/// Whether runs are compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compile {
    /// Handlers execute everything.
    Never,
    /// What is executed often.
    #[default]
    Often,
    /// Everything that can be, before it is executed for the first time.
    Always,
}

/// What the SMs are, and how they are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Worker threads; 0 means as many as the machine has.
    pub threads: usize,
    /// With a seed, one worker executes everything in an order that the seed decides: the same seed gives the same run,
    /// another seed another one that the card could have made too.
    pub seed: Option<u64>,
    /// SMs.
    pub multiprocessors: u32,
    /// Warps that an SM holds.
    pub warps: u32,
    /// Blocks that an SM holds.
    pub blocks: u32,
    /// Registers of an SM.
    pub registers: u32,
    /// Bytes of shared memory of an SM.
    pub shared_bytes: u32,
    /// What is compiled to native code. It changes nothing but the time that a launch takes.
    pub compile: Compile,
}

impl Default for Configuration {
    /// A large GPU of the Ada generation, on all threads of the machine.
    fn default() -> Self {
        Self {
            threads: 0,
            seed: None,
            multiprocessors: 128,
            warps: 48,
            blocks: 24,
            registers: 64 << 10,
            shared_bytes: 100 << 10,
            compile: Compile::default(),
        }
    }
}

impl Configuration {
    /// Blocks of a launch that are resident at a time.
    fn resident(&self, launch: &Prepared) -> u64 {
        let shape = launch.shape();
        let registers = (shape.registers * 32).next_multiple_of(256) * shape.warps;
        let by_registers = self.registers / registers.max(1);
        let by_shared = self.shared_bytes.max(shape.shared_bytes) / shape.shared_bytes.max(1);
        let blocks = (self.warps / shape.warps.max(1)).min(self.blocks).min(by_registers).min(by_shared);
        u64::from(blocks.max(1)) * u64::from(self.multiprocessors.max(1))
    }
}

/// What workers share over launches.
#[derive(Debug)]
struct Shared {
    configuration: Configuration,
    /// Most threads of a launch. To ask the system how many processors there are takes longer than a small launch.
    threads: usize,
    cache: CodeCache,
    /// Workers without work.
    #[expect(
        clippy::vec_box,
        reason = "a worker has kilobytes, and is taken out and put back for every launch"
    )]
    workers: Mutex<Vec<Box<Worker>>>,
    launches: AtomicU64,
}

/// The SMs of one GPU.
#[derive(Debug)]
pub struct Processor {
    shared: Arc<Shared>,
}

/// A launch under way.
struct Grid {
    shared: Arc<Shared>,
    launch: Prepared,
    /// Clusters resident at most.
    limit: u64,
    /// The next cluster.
    next: AtomicU64,
    resident: AtomicU64,
    failed: AtomicBool,
    observe: Observe,
    /// Workers that joined.
    joined: AtomicUsize,
    done: Mutex<Done>,
}

#[derive(Default)]
struct Done {
    statistics: Statistics,
    observed: Observed,
    fault: Option<Fault>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the mutexes hold is valid after every statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Instructions that are left to execute, by a guess, for which helpers are called.
const WORTH_HELP: u64 = 20_000;
/// Rounds in which every block only looked at what others write, after which the worker sleeps between rounds.
const PATIENCE: usize = 64;

impl Processor {
    /// SMs without work.
    pub fn new(configuration: Configuration) -> Self {
        let threads = match (configuration.seed, configuration.threads) {
            (Some(_), _) => 1,
            (None, 0) => thread::available_parallelism().map_or(1, usize::from),
            (None, threads) => threads,
        };
        let shared = Shared {
            configuration,
            threads,
            cache: CodeCache::new(Features::detect(), configuration.compile),
            workers: Mutex::default(),
            launches: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Instructions that kernels reached and that are not simulated, with how often.
    pub fn unsupported(&self) -> Vec<(String, u64)> {
        self.shared.cache.unsupported()
    }

    /// Runs a grid to its end, to its first fault, or until `stop` is raised.
    ///
    /// # Errors
    /// The first fault found; other blocks stop at the end of their turn.
    pub fn run(
        &self,
        launch: &Launch,
        map: &Arc<AddressMap>,
        stop: &AtomicBool,
    ) -> Result<Statistics, Fault> {
        self.run_observed(launch, map, stop, Observe::default()).0
    }

    /// The same, and what was observed until then.
    pub fn run_observed(
        &self,
        launch: &Launch,
        map: &Arc<AddressMap>,
        stop: &AtomicBool,
        observe: Observe,
    ) -> (Result<Statistics, Fault>, Observed) {
        let refuse = |kind| Fault {
            kind,
            program_counter: launch.program_address,
            text: String::from("launch"),
            cta: [0; 3],
            warp: 0,
            lanes: 0,
        };
        let prepared = match Prepared::new(launch, map) {
            Ok(prepared) => prepared,
            Err(kind) => return (Err(refuse(kind)), Observed::default()),
        };
        let configuration = &self.shared.configuration;
        let threads = self.shared.threads;
        // Blocks of a cluster are brought in together.
        let size = u64::from(prepared.cluster);
        let blocks = prepared.blocks;
        let workers = usize::try_from(blocks / size).unwrap_or(usize::MAX).clamp(1, threads);
        let number = self.shared.launches.fetch_add(1, Ordering::Relaxed);
        let random = configuration.seed.map(|seed| Random::new(seed ^ number.wrapping_mul(0x9e37_79b9)));
        let limit = (configuration.resident(&prepared) / size).max(workers as u64);
        let grid = Arc::new(Grid {
            shared: Arc::clone(&self.shared),
            launch: prepared,
            limit,
            next: AtomicU64::new(0),
            resident: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            observe,
            joined: AtomicUsize::new(0),
            done: Mutex::default(),
        });
        let mut call = None;
        grid.work(random, &mut |executed, finished| {
            if stop.load(Ordering::Relaxed) {
                grid.fail(refuse(FaultKind::Stopped));
                return;
            }
            if call.is_none() && workers > 1 {
                let left = blocks.saturating_sub(size * grid.next.load(Ordering::Relaxed));
                let one = executed / finished.max(1);
                if finished == 0 || left.saturating_mul(one.max(1)) >= WORTH_HELP {
                    call = Some(pool::call(Arc::clone(&grid) as Arc<dyn Job>, workers - 1));
                }
            }
        });
        if let Some(call) = call {
            call.close();
            while !call.wait(Duration::from_micros(500)) {
                if stop.load(Ordering::Relaxed) {
                    grid.fail(refuse(FaultKind::Stopped));
                }
            }
        }
        let mut done = lock(&grid.done);
        let result = match done.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(done.statistics),
        };
        (result, std::mem::take(&mut done.observed))
    }
}

/// When the blocks of a worker ran.
struct Watch {
    worker: usize,
    /// Blocks that run, with the time of their first turn.
    running: Vec<(u64, Instant)>,
    finished: Vec<Ran>,
}

impl Watch {
    fn new(worker: usize) -> Self {
        Self { worker, running: Vec::new(), finished: Vec::new() }
    }

    /// A block has a turn.
    fn starts(&mut self, number: u64) {
        if !self.running.iter().any(|(known, _)| *known == number) {
            self.running.push((number, Instant::now()));
        }
    }

    /// A block has ended.
    fn finished(&mut self, number: u64, block: [u32; 3]) {
        if let Some(at) = self.running.iter().position(|(known, _)| *known == number) {
            let (_, start) = self.running.swap_remove(at);
            self.finished.push(Ran { block, worker: self.worker, start, end: Instant::now() });
        }
    }
}

impl Job for Grid {
    fn help(&self) {
        self.work(None, &mut |_, _| {});
    }
}

impl Grid {
    /// Ends the launch; the first fault is the one that counts.
    fn fail(&self, fault: Fault) {
        lock(&self.done).fault.get_or_insert(fault);
        self.failed.store(true, Ordering::Relaxed);
    }

    fn clusters(&self) -> u64 {
        self.launch.blocks / u64::from(self.launch.cluster)
    }

    /// The next cluster, if one more may be resident.
    fn admit(&self) -> Option<u64> {
        if self.next.load(Ordering::Relaxed) >= self.clusters() {
            return None;
        }
        if self.resident.fetch_add(1, Ordering::Relaxed) < self.limit {
            return self.replace();
        }
        self.resident.fetch_sub(1, Ordering::Relaxed);
        None
    }

    /// The next cluster in place of one that was resident.
    fn replace(&self) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number < self.clusters() {
            return Some(number);
        }
        self.resident.fetch_sub(1, Ordering::Relaxed);
        None
    }

    /// Brings in the blocks of a cluster. The place of the first.
    fn bring(&self, worker: &mut Worker, resident: &mut Vec<Block>, number: u64) -> usize {
        let size = u64::from(self.launch.cluster);
        let first = resident.len();
        resident
            .extend((number * size..(number + 1) * size).map(|number| worker.block(&self.launch, number)));
        if size > 1 {
            Block::join(&mut resident[first..], &self.launch);
        }
        first
    }

    /// Executes blocks until none is left. `look` is called between turns, with instructions and blocks so far.
    fn work(&self, random: Option<Random>, look: &mut dyn FnMut(u64, u64)) {
        let mut worker = lock(&self.shared.workers).pop().unwrap_or_else(|| {
            let Configuration { multiprocessors, warps, .. } = self.shared.configuration;
            Box::new(Worker::new(multiprocessors, warps))
        });
        worker.start(&self.launch.map, random);
        worker.counting = self.observe.instructions.then(Box::<Counting>::default);
        let mut watch = self.observe.blocks.then(|| Watch::new(self.joined.fetch_add(1, Ordering::Relaxed)));
        let mut resident = Vec::new();
        // Blocks whose memory others of their cluster may still reach.
        let mut ended: Vec<Block> = Vec::new();
        let mut at = 0;
        // Turns in a row that led to nothing.
        let mut fruitless = 0;
        while !self.failed.load(Ordering::Relaxed) {
            if resident.is_empty() {
                let Some(number) = self.admit() else { break };
                at = self.bring(&mut worker, &mut resident, number);
            }
            if let Some(watch) = &mut watch {
                watch.starts(resident[at].cta.number);
            }
            match worker.turn(&self.shared.cache, &self.launch, &mut resident[at]) {
                Ok(Outcome::Finished) if self.launch.cluster > 1 => {
                    worker.caches.statistics.ctas += 1;
                    fruitless = 0;
                    let block = resident.swap_remove(at);
                    let all = block.end();
                    let cluster = Arc::clone(&block.cta.cluster);
                    ended.push(block);
                    if all {
                        let (over, rest) = ended
                            .into_iter()
                            .partition::<Vec<_>, _>(|block| Arc::ptr_eq(&block.cta.cluster, &cluster));
                        ended = rest;
                        over.into_iter().for_each(|block| worker.recycle(&self.launch, block));
                        if let Some(number) = self.replace() {
                            self.bring(&mut worker, &mut resident, number);
                        }
                    }
                    if at >= resident.len() {
                        at = 0;
                    }
                }
                Ok(Outcome::Finished) => {
                    worker.caches.statistics.ctas += 1;
                    fruitless = 0;
                    if let Some(watch) = &mut watch {
                        watch.finished(resident[at].cta.number, resident[at].cta.index);
                    }
                    if let Some(number) = self.replace() {
                        worker.restart(&self.launch, &mut resident[at], number);
                    } else {
                        let block = resident.swap_remove(at);
                        worker.recycle(&self.launch, block);
                    }
                    if at >= resident.len() {
                        at = 0;
                    }
                }
                Ok(outcome) => {
                    fruitless = if outcome == Outcome::Ran { 0 } else { fruitless + 1 };
                    if let Some(number) = self.admit() {
                        at = self.bring(&mut worker, &mut resident, number);
                    } else if let Some(random) = &mut worker.caches.random {
                        at = random.next() as usize % resident.len();
                    } else {
                        at = (at + 1) % resident.len();
                    }
                    if fruitless >= PATIENCE * resident.len() {
                        thread::sleep(Duration::from_micros(50));
                    } else if fruitless >= resident.len() {
                        thread::yield_now();
                    }
                }
                Err(fault) => self.fail(*fault),
            }
            let statistics = &worker.caches.statistics;
            look(statistics.instructions, statistics.ctas);
        }
        let statistics = worker.caches.statistics;
        {
            let mut done = lock(&self.done);
            done.statistics.instructions += statistics.instructions;
            done.statistics.lane_instructions += statistics.lane_instructions;
            done.statistics.ctas += statistics.ctas;
            let instructions = worker.counting.take().map(|counting| counting.take()).unwrap_or_default();
            let blocks = watch.map(|watch| watch.finished).unwrap_or_default();
            done.observed.add(Observed { instructions, blocks });
        }
        for block in resident.into_iter().chain(ended) {
            worker.recycle(&self.launch, block);
        }
        lock(&self.shared.workers).push(worker);
    }
}
