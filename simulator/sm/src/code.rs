//! Code: pages of micro-operations, made once for a page's bytes and kept over launches.
//!
//! A page is looked up by its address, and used only if the bytes in GPU memory are still those that it was made from.
//! So code that was replaced is never run stale, and a kernel that is launched again is not decoded again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::execute;
use super::fault::FaultKind;
use super::lanes::Lanes;
use super::launch::Prepared;
use super::lower;
use super::micro::{Features, Micro};
use super::native::Runs;
use super::processor::Compile;
use nv_memory::AddressMap;

/// Bytes of a page.
pub(super) const PAGE_BYTES: u64 = 4096;
/// Instructions of a page.
pub(super) const PAGE_CODE: usize = 256;
/// Pages that are kept; when there are more, all are forgotten.
const KEPT: usize = 4096;

/// What a row of the pool holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pooled {
    /// A number of the instruction.
    Immediate(u32),
    /// A word of a constant bank, `(word & keep) ^ flip`: sign marks are applied here.
    Constant { bank: u8, offset: u32, keep: u32, flip: u32 },
}

/// A row of the pool that an instruction reads, which cannot run where the bank is shorter.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConstantUse {
    pub code: u16,
    pub row: u16,
}

/// A page's micro-operations.
#[derive(Debug)]
pub(super) struct Page {
    pub bytes: Box<[u8]>,
    pub code: Vec<Micro>,
    pub pool: Vec<Pooled>,
    pub uses: Vec<ConstantUse>,
    /// Faults of instructions that cannot run.
    pub faults: Vec<FaultKind>,
    /// Its straight runs, which are compiled when they are executed often.
    pub runs: Runs,
    /// Instructions with operands of described banks.
    pub bindless: Vec<execute::bindless::Operand>,
}

/// What a page's micro-operations depend on beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub start: u64,
    pub sm: u32,
    pub registers: u32,
}

/// The pages before and behind a page, where its code leads there: compiled code stores no register that nobody reads there.
#[derive(Debug)]
pub(super) struct Neighbours {
    pub pages: [Option<Box<[u8]>>; 2],
    pub sm: u32,
    pub features: Features,
}

impl Neighbours {
    /// Whether memory still holds them. `start` is the address of the page that they are neighbours of.
    fn are_held(&self, map: &AddressMap, start: u64) -> bool {
        let places = [start.wrapping_sub(PAGE_BYTES), start.wrapping_add(PAGE_BYTES)];
        self.pages
            .iter()
            .zip(places)
            .all(|(bytes, place)| bytes.as_ref().is_none_or(|bytes| map.holds(place, bytes).unwrap_or(false)))
    }
}

/// The pages of all workers.
#[derive(Debug)]
pub(super) struct CodeCache {
    features: Features,
    compile: Compile,
    pages: Mutex<HashMap<Key, Arc<Page>>>,
    unsupported: Mutex<BTreeMap<String, u64>>,
}

impl CodeCache {
    pub fn new(features: Features, compile: Compile) -> Self {
        // Compiled code needs what handlers for vectors need.
        let compile = if features == Features::Baseline { Compile::Never } else { compile };
        Self { features, compile, pages: Mutex::default(), unsupported: Mutex::default() }
    }

    fn page(&self, key: Key, bytes: &[u8], map: &AddressMap) -> Arc<Page> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = pages.get(&key)
            && *page.bytes == *bytes
            && page.runs.neighbours().are_held(map, key.start)
        {
            return Arc::clone(page);
        }
        if pages.len() >= KEPT {
            pages.clear();
        }
        let read = |start| {
            let mut bytes = vec![0; PAGE_BYTES as usize].into_boxed_slice();
            map.read(start, &mut bytes).ok().map(|()| bytes)
        };
        let page = Arc::new(lower::page(bytes, key, self.features, self.compile, &read));
        pages.insert(key, Arc::clone(&page));
        page
    }

    /// Counts an instruction that was reached and is not simulated.
    pub fn count_unsupported(&self, what: &str) {
        let mut unsupported = self.unsupported.lock().unwrap_or_else(PoisonError::into_inner);
        *unsupported.entry(what.to_owned()).or_insert(0) += 1;
    }

    /// Instructions that were reached and are not simulated, with how often.
    pub fn unsupported(&self) -> Vec<(String, u64)> {
        let unsupported = self.unsupported.lock().unwrap_or_else(PoisonError::into_inner);
        unsupported.iter().map(|(what, count)| (what.clone(), *count)).collect()
    }
}

/// A page with the rows of its pool filled for one launch.
#[derive(Debug)]
pub(super) struct Loaded {
    pub start: u64,
    pub page: Arc<Page>,
    pub rows: Vec<Lanes>,
    /// The code where it differs from the page's: constants are missing.
    patched: Option<Vec<Micro>>,
}

impl Loaded {
    fn new(start: u64, page: Arc<Page>) -> Self {
        let rows = page
            .pool
            .iter()
            .map(|entry| match entry {
                Pooled::Immediate(value) => Lanes::splat(*value),
                Pooled::Constant { .. } => Lanes::splat(0),
            })
            .collect();
        Self { start, page, rows, patched: None }
    }

    /// The micro-operations.
    #[inline(always)]
    pub fn code(&self) -> &[Micro] {
        self.patched.as_ref().unwrap_or(&self.page.code)
    }

    /// Whether the code is the page's.
    pub fn is_whole(&self) -> bool {
        self.patched.is_none()
    }

    /// Fills in the constants of a launch.
    fn fill(&mut self, launch: &Prepared) {
        self.patched = None;
        let mut missing = false;
        for (row, entry) in self.rows.iter_mut().zip(&self.page.pool) {
            if let Pooled::Constant { bank, offset, keep, flip } = *entry {
                match launch.constant(bank, offset) {
                    Ok(word) => *row = Lanes::splat((word & keep) ^ flip),
                    Err(_) => missing = true,
                }
            }
        }
        if !missing {
            return;
        }
        let mut code = self.page.code.clone();
        self.page.runs.undo(&mut code);
        for ConstantUse { code: index, row } in &self.page.uses {
            let entry = self.page.pool.get(usize::from(*row));
            if let Some(Pooled::Constant { bank, offset, .. }) = entry
                && launch.constant(*bank, *offset).is_err()
                && let Some(op) = code.get_mut(usize::from(*index))
            {
                op.run = Features::plain::<execute::MissingConstant>();
                op.payload = u64::from(*bank) << 32 | u64::from(*offset);
            }
        }
        self.patched = Some(code);
    }
}

/// Places of the table by page number.
const TABLE: usize = 64;

/// A worker's pages.
#[derive(Debug)]
pub(super) struct LoadedCode {
    table: [usize; TABLE],
    pages: Vec<(Key, Loaded)>,
    by_key: HashMap<Key, usize>,
}

impl LoadedCode {
    pub fn new() -> Self {
        Self { table: [usize::MAX; TABLE], pages: Vec::new(), by_key: HashMap::new() }
    }

    /// To be called before a launch: whatever was loaded is looked at again.
    pub fn start(&mut self) {
        self.table = [usize::MAX; TABLE];
        if self.pages.len() > KEPT / 4 {
            self.pages.clear();
            self.by_key.clear();
        }
    }

    /// The page that holds `pc`.
    #[inline(always)]
    pub fn page(&mut self, pc: u64, launch: &Prepared, cache: &CodeCache) -> Result<&Loaded, FaultKind> {
        let start = pc & !(PAGE_BYTES - 1);
        let place = (pc / PAGE_BYTES) as usize % TABLE;
        let known = self.pages.get(self.table[place]).is_some_and(|(_, page)| page.start == start);
        if !known {
            self.table[place] = self.load(start, launch, cache)?;
        }
        self.pages.get(self.table[place]).map(|(_, page)| page).ok_or(FaultKind::InvalidPc)
    }

    #[cold]
    fn load(&mut self, start: u64, launch: &Prepared, cache: &CodeCache) -> Result<usize, FaultKind> {
        let key = Key { start, sm: launch.launch.sm, registers: launch.launch.registers };
        let known = self.by_key.get(&key).copied();
        if let Some(index) = known
            && let Some((_, loaded)) = self.pages.get_mut(index)
            && launch.map.holds(start, &loaded.page.bytes).map_err(|_| FaultKind::InvalidPc)?
            && loaded.page.runs.neighbours().are_held(&launch.map, start)
        {
            loaded.fill(launch);
            return Ok(index);
        }
        let mut bytes = [0; PAGE_BYTES as usize];
        launch.map.read(start, &mut bytes).map_err(|_| FaultKind::InvalidPc)?;
        let loaded = Loaded::new(start, cache.page(key, &bytes, &launch.map));
        let index = match known {
            Some(index) => {
                self.pages[index].1 = loaded;
                index
            }
            None => {
                self.pages.push((key, loaded));
                self.by_key.insert(key, self.pages.len() - 1);
                self.pages.len() - 1
            }
        };
        self.pages[index].1.fill(launch);
        Ok(index)
    }
}
