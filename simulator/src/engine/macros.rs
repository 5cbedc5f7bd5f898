//! The method macro expander (MME) in front of an object: small programs that turn one method into many.
//!
//! NVIDIA's library loads two into every compute object: one fills memory, one copies memory into inline data. The encoding and the
//! rules are those of Turing and later; source: Mesa's `mme_tu104.xml` and its notes (facts only), checked with the
//! programs of a recording on an H200.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use crate::host::lock;

/// Words of the memory for instructions.
const INSTRUCTION_WORDS: usize = 3 * 0x1000;
/// Programs that can be called.
const PROGRAMS: usize = 256;
/// Words of the memory for data.
const DATA_WORDS: usize = 0xc00;
/// Words of the largest FIFO that SET_MME_DATA_FIFO_CONFIG knows.
const FIFO_WORDS: u32 = (16 << 10) / 4;
/// Instructions after which a call is taken for one that never ends.
const MOST_STEPS: u32 = 1 << 20;

/// Lowest bit and width of each part of an instruction of 96 bits.
const END_NEXT: (u32, u32) = (0, 1);
const PREDICATE_MODE: (u32, u32) = (1, 4);
const PREDICATE: (u32, u32) = (5, 5);
const IMMEDIATE: [(u32, u32); 2] = [(30, 16), (66, 16)];
/// Operation, destination, sources.
const ALU: [[(u32, u32); 4]; 2] =
    [[(10, 5), (15, 5), (20, 5), (25, 5)], [(46, 5), (51, 5), (56, 5), (61, 5)]];
/// Method, data.
const OUT: [[(u32, u32); 2]; 2] = [[(82, 3), (85, 4)], [(89, 3), (92, 4)]];

const REGISTERS: usize = 24;
const ZERO: u32 = 24;
const OWN_IMMEDIATE: u32 = 25;
const OTHER_IMMEDIATE: u32 = 26;
const IMMEDIATE_32: u32 = 27;
const LOAD: [u32; 2] = [28, 29];
/// What an output takes: results, parameters, immediates, their upper four bits, both immediates.
const OUT_LOAD: [u32; 2] = [3, 4];

/// For which of ALU 0, ALU 1, output 0, output 1 a predicate counts, and whether it must hold there.
const MODES: [[Option<bool>; 4]; 16] = {
    const U: Option<bool> = None;
    const T: Option<bool> = Some(true);
    const F: Option<bool> = Some(false);
    [
        [U, U, U, U],
        [T, T, T, T],
        [F, F, F, F],
        [T, T, U, U],
        [F, F, U, U],
        [T, F, U, U],
        [T, U, U, U],
        [F, U, U, U],
        [U, U, T, T],
        [U, U, T, F],
        [U, U, T, U],
        [U, U, F, T],
        [U, U, F, F],
        [U, U, F, U],
        [U, U, U, T],
        [U, U, U, F],
    ]
};

/// One instruction.
#[derive(Clone, Copy)]
struct Instruction(u128);

impl Instruction {
    fn get(self, (low, width): (u32, u32)) -> u32 {
        (self.0 >> low) as u32 & ((1 << width) - 1)
    }

    fn immediate(self, alu: usize) -> u32 {
        self.get(IMMEDIATE[alu])
    }

    /// How many parameters it takes.
    fn parameters(self) -> usize {
        let takes = |number: usize| {
            let of_alu = ALU.iter().flat_map(|alu| &alu[2..]).any(|source| self.get(*source) == LOAD[number]);
            let of_out = OUT.iter().flatten().any(|out| self.get(*out) == OUT_LOAD[number]);
            of_alu || of_out || self.get(PREDICATE) == LOAD[number]
        };
        if takes(1) { 2 } else { usize::from(takes(0)) }
    }
}

/// A call that is under way.
#[derive(Debug)]
struct Call {
    at: usize,
    steps: u32,
    registers: [u32; REGISTERS],
    carry: u32,
    /// Left rounds of a loop, its first and its last instruction.
    rounds: (u32, usize, usize),
    /// The next instruction is the last.
    ends: bool,
    /// Where the next output goes, and by how much the address rises with each.
    method: Option<(u32, u32)>,
    /// Outputs of the instruction before that were not sent yet.
    outputs: VecDeque<(u32, u32)>,
    /// Words that memory is to give as parameters.
    wanted: u32,
    done: bool,
}

/// What a call wants next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: no call is under way, or it waits for parameters.
    Rest,
    /// That a method gets data.
    Send {
        /// The method's address.
        address: u32,
        /// Its data.
        data: u32,
    },
    /// So many words from the memory that SET_MME_MEM_ADDRESS names, as parameters.
    Read(u32),
}

/// What the channels of a context load and share.
#[derive(Debug, Default)]
pub(super) struct Memory {
    instructions: Vec<u32>,
    instruction: usize,
    starts: Vec<u32>,
    start: usize,
    data: Vec<u32>,
}

/// The expander of one object.
#[derive(Debug, Default)]
pub(super) struct Macros {
    memory: Arc<Mutex<Memory>>,
    parameters: VecDeque<u32>,
    call: Option<Call>,
}

/// Puts a word at a place of a memory that grows up to a limit, and moves on.
fn load(memory: &mut Vec<u32>, place: &mut usize, limit: usize, word: u32) -> Result<(), String> {
    if *place >= limit {
        return Err(format!("word {place:#x} of a memory of {limit:#x}"));
    }
    if memory.len() <= *place {
        memory.resize(*place + 1, 0);
    }
    memory[*place] = word;
    *place += 1;
    Ok(())
}

impl Macros {
    pub(super) fn new(memory: Arc<Mutex<Memory>>) -> Self {
        Self { memory, ..Self::default() }
    }

    /// Moves to a place of the memory for instructions.
    pub(super) fn point_to_instruction(&mut self, place: u32) {
        lock(&self.memory).instruction = place as usize;
    }

    /// Loads a word of instructions.
    pub(super) fn load_instruction(&mut self, word: u32) -> Result<(), String> {
        let memory = &mut *lock(&self.memory);
        load(&mut memory.instructions, &mut memory.instruction, INSTRUCTION_WORDS, word)
    }

    /// Moves to the start of a program.
    pub(super) fn point_to_start(&mut self, program: u32) {
        lock(&self.memory).start = program as usize;
    }

    /// Loads where a program starts.
    pub(super) fn load_start(&mut self, word: u32) -> Result<(), String> {
        let memory = &mut *lock(&self.memory);
        load(&mut memory.starts, &mut memory.start, PROGRAMS, word)
    }

    /// Begins a call with its first parameter.
    pub(super) fn call(&mut self, program: u32, parameter: u32) -> Result<(), String> {
        if self.call.is_some() {
            return Err("the call before still awaits parameters".to_owned());
        }
        let Some(start) = lock(&self.memory).starts.get(program as usize).copied() else {
            return Err(format!("program {program} was never loaded"));
        };
        self.parameters = VecDeque::from([parameter]);
        self.call = Some(Call {
            at: start as usize,
            steps: 0,
            registers: [0; REGISTERS],
            carry: 0,
            rounds: (0, 0, 0),
            ends: false,
            method: None,
            outputs: VecDeque::new(),
            wanted: 0,
            done: false,
        });
        Ok(())
    }

    /// Adds a parameter to a call.
    pub(super) fn parameter(&mut self, parameter: u32) -> Result<(), String> {
        if self.call.is_none() {
            return Err("no call awaits a parameter".to_owned());
        }
        self.parameters.push_back(parameter);
        Ok(())
    }

    /// Gives what [`Step::Read`] wanted.
    pub(super) fn give(&mut self, words: impl IntoIterator<Item = u32>) {
        self.parameters = words.into_iter().collect();
    }

    /// MME_DMA_READ_FIFOED of a call: the words come when the program waits for them.
    pub(super) fn want(&mut self, words: u32) -> Result<(), String> {
        if words > FIFO_WORDS {
            return Err(format!("{words} words for a FIFO of {FIFO_WORDS}"));
        }
        if let Some(call) = &mut self.call {
            call.wanted = words;
        }
        Ok(())
    }

    /// Whether a call waits for parameters.
    pub(super) fn is_busy(&self) -> bool {
        self.call.is_some()
    }

    /// Goes on with a call until it wants something. `state` gives the last value of a method.
    ///
    /// # Errors
    /// What in the program is not simulated or wrong.
    pub(super) fn step(&mut self, state: impl Fn(u32) -> u32) -> Result<Step, String> {
        if self.call.is_none() {
            return Ok(Step::Rest);
        }
        let memory = &mut *lock(&self.memory);
        loop {
            let Some(call) = &mut self.call else { return Ok(Step::Rest) };
            if let Some((address, data)) = call.outputs.pop_front() {
                return Ok(Step::Send { address, data });
            }
            if call.done {
                self.call = None;
                return Ok(Step::Rest);
            }
            let words = memory.instructions.get(3 * call.at..3 * call.at + 3);
            let Some([high, middle, low]) = words else {
                return Err(format!("no instruction {:#x}", call.at));
            };
            let instruction =
                Instruction(u128::from(*high) << 64 | u128::from(*middle) << 32 | u128::from(*low));
            if self.parameters.len() < instruction.parameters() {
                return Ok(Step::Rest);
            }
            call.steps += 1;
            if call.steps > MOST_STEPS {
                return Err(format!("a call of more than {MOST_STEPS} instructions"));
            }
            let mut loads = [0; 2];
            for load in loads.iter_mut().take(instruction.parameters()) {
                *load = self.parameters.pop_front().unwrap_or(0);
            }
            if call.run(instruction, loads, &mut memory.data, &state)? && call.wanted > 0 {
                return Ok(Step::Read(std::mem::take(&mut call.wanted)));
            }
        }
    }
}

impl Call {
    fn source(
        &self,
        instruction: Instruction,
        alu: usize,
        loads: [u32; 2],
        number: u32,
    ) -> Result<u32, String> {
        let signed = |immediate: u32| immediate as u16 as i16 as u32;
        Ok(match number {
            ZERO => 0,
            OWN_IMMEDIATE => signed(instruction.immediate(alu)),
            OTHER_IMMEDIATE => signed(instruction.immediate(1 - alu)),
            IMMEDIATE_32 => instruction.immediate(0) << 16 | instruction.immediate(1),
            number if number == LOAD[0] => loads[0],
            number if number == LOAD[1] => loads[1],
            number => *self.registers.get(number as usize).ok_or_else(|| format!("source {number}"))?,
        })
    }

    /// Runs one instruction; whether it was the barrier that waits for memory.
    fn run(
        &mut self,
        instruction: Instruction,
        loads: [u32; 2],
        data: &mut Vec<u32>,
        state: &impl Fn(u32) -> u32,
    ) -> Result<bool, String> {
        let predicate = self.source(instruction, 0, loads, instruction.get(PREDICATE))? != 0;
        let mode = MODES[instruction.get(PREDICATE_MODE) as usize];
        let on = mode.map(|wanted| wanted.is_none_or(|wanted| wanted == predicate));
        let mut next = self.at + 1;
        let mut barrier = false;
        let mut results = [0; 2];
        for alu in 0..2 {
            if !on[alu] {
                continue;
            }
            let [operation, destination, a, b] = ALU[alu].map(|part| instruction.get(part));
            let (x, y) = (self.source(instruction, alu, loads, a)?, self.source(instruction, alu, loads, b)?);
            let immediate = instruction.immediate(alu);
            let truth = |value: bool| if value { u32::MAX } else { 0 };
            let result = match operation {
                0 => self.with_carry(x.overflowing_add(y)),
                1 => x.wrapping_add(y).wrapping_add(self.carry),
                2 => self.with_carry(x.overflowing_sub(y)),
                3 => x.wrapping_sub(y).wrapping_sub(self.carry),
                4 => self.wide((i64::from(x as i32) * i64::from(y as i32)) as u64),
                5 => self.carry,
                6 => self.wide(u64::from(x) * u64::from(y)),
                // The one use that is known: wait until what MME_DMA_READ_FIFOED reads is there.
                7 if (x, y) == (0x1000, 1) => {
                    barrier = true;
                    0
                }
                8 => x.leading_zeros(),
                9 => x << (y & 31),
                10 => x >> (y & 31),
                11 => (x as i32 >> (y & 31)) as u32,
                12 => x & y,
                13 => !(x & y),
                14 => x | y,
                15 => x ^ y,
                16 => {
                    let (to, bits, from) = (immediate >> 10 & 0x3f, immediate >> 5 & 0x1f, immediate & 0x1f);
                    let taken = u64::from(y >> from) & ((1 << bits) - 1);
                    let kept = u64::from(x) & !(((1 << bits) - 1) << to);
                    (kept | taken << to) as u32
                }
                17 | 25 => truth((x as i32) < y as i32),
                18 | 26 => truth(x < y),
                19 | 27 => truth(x as i32 <= y as i32),
                20 | 28 => truth(x <= y),
                21 | 29 => truth(x == y),
                22 => state((x.wrapping_add(y) & 0xfff) << 2),
                23 => {
                    if self.rounds.0 > 0 || immediate < 2 {
                        return Err(format!("a loop of {immediate} instructions within a loop or too short"));
                    }
                    self.rounds = (x.max(1) - 1, self.at + 1, self.at + immediate as usize - 1);
                    0
                }
                24 => {
                    next = self.at + (immediate & 0x7fff) as usize;
                    0
                }
                30 => data.get(x as usize).copied().unwrap_or(0),
                31 => {
                    let mut place = x as usize;
                    load(data, &mut place, DATA_WORDS, y)?;
                    0
                }
                operation => return Err(format!("operation {operation} with {x:#x} and {y:#x}")),
            };
            if (25..=29).contains(&operation) && (result != 0) == (immediate & 0x8000 != 0) {
                // 13 bits with a sign.
                let by = ((immediate << 19) as i32 >> 19) as isize;
                next = self.at.checked_add_signed(by).ok_or("a branch before the first instruction")?;
            }
            results[alu] = result;
            match destination {
                ZERO => {}
                number => match self.registers.get_mut(number as usize) {
                    Some(register) => *register = result,
                    None => return Err(format!("destination {number}")),
                },
            }
        }
        for out in 0..2 {
            if on[2 + out] {
                let [method, emitted] = OUT[out].map(|part| instruction.get(part));
                if let Some(word) = output(instruction, results, loads, method)? {
                    self.method = Some(((word & 0xfff) << 2, word >> 12 & 0xf));
                }
                if let Some(word) = output(instruction, results, loads, emitted)? {
                    let (address, step) = self.method.ok_or("an output before any method")?;
                    self.outputs.push_back((address, word));
                    self.method = Some((address + 4 * step, step));
                }
            }
        }
        if self.ends {
            self.done = true;
        }
        self.ends = instruction.get(END_NEXT) != 0;
        if self.rounds.0 > 0 && self.at == self.rounds.2 {
            self.rounds.0 -= 1;
            next = self.rounds.1;
        }
        self.at = next;
        Ok(barrier)
    }

    fn with_carry(&mut self, (result, carry): (u32, bool)) -> u32 {
        self.carry = carry.into();
        result
    }

    fn wide(&mut self, product: u64) -> u32 {
        self.carry = (product >> 32) as u32;
        product as u32
    }
}

/// What an output takes; `None` for nothing.
fn output(
    instruction: Instruction,
    results: [u32; 2],
    loads: [u32; 2],
    number: u32,
) -> Result<Option<u32>, String> {
    let immediates = [instruction.immediate(0), instruction.immediate(1)];
    Ok(Some(match number {
        0 => return Ok(None),
        1 => results[0],
        2 => results[1],
        3 => loads[0],
        4 => loads[1],
        5 => immediates[0],
        6 => immediates[1],
        8 => immediates[0] >> 12,
        9 => immediates[1] >> 12,
        10 => immediates[0] << 16 | immediates[1],
        number => return Err(format!("output {number}")),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Assembles an instruction that does nothing but what is set.
    fn assemble(parts: &[((u32, u32), u32)]) -> [u32; 3] {
        let mut bits = 0u128;
        let idle = ALU.iter().flat_map(|alu| alu[1..].iter()).map(|part| (*part, ZERO));
        for ((low, width), value) in idle.chain([(PREDICATE, ZERO)]).chain(parts.iter().copied()) {
            let mask = ((1u128 << width) - 1) << low;
            bits = bits & !mask | (u128::from(value) << low) & mask;
        }
        [(bits >> 64) as u32, (bits >> 32) as u32, bits as u32]
    }

    fn loaded(program: &[[u32; 3]]) -> Macros {
        let mut macros = Macros::default();
        macros.point_to_instruction(0);
        program.iter().flatten().for_each(|word| macros.load_instruction(*word).unwrap());
        macros.point_to_start(0);
        macros.load_start(0).unwrap();
        macros
    }

    fn sent(macros: &mut Macros) -> Vec<(u32, u32)> {
        let mut sent = Vec::new();
        while let Step::Send { address, data } = macros.step(|address| address + 1).unwrap() {
            sent.push((address, data));
        }
        sent
    }

    #[test]
    fn a_loop_sends_its_parameter_as_often_as_it_is_told() {
        // r1 = parameter, r0 = parameter, to method 0x1b4 without a step; r1 times: send r0.
        let program = [
            assemble(&[
                (ALU[0][1], 1),
                (ALU[0][2], LOAD[0]),
                (ALU[1][1], 0),
                (ALU[1][2], LOAD[1]),
                (IMMEDIATE[0], 0x1b4 >> 2),
                (OUT[0][0], 5),
            ]),
            assemble(&[(ALU[0][0], 23), (ALU[0][2], 1), (IMMEDIATE[0], 2)]),
            assemble(&[(ALU[0][2], 0), (OUT[0][1], 1)]),
            assemble(&[(END_NEXT, 1)]),
            assemble(&[]),
        ];
        let mut macros = loaded(&program);
        macros.call(0, 3).unwrap();
        assert_eq!(macros.step(|_| 0), Ok(Step::Rest), "it waits for its second parameter");
        assert!(macros.is_busy());
        macros.parameter(7).unwrap();
        assert_eq!(sent(&mut macros), [(0x1b4, 7); 3]);
        assert!(!macros.is_busy());
    }

    #[test]
    fn words_of_memory_become_parameters_at_the_barrier() {
        let program = [
            assemble(&[
                (ALU[0][0], 7),
                (ALU[0][2], OWN_IMMEDIATE),
                (ALU[0][3], OTHER_IMMEDIATE),
                (IMMEDIATE[0], 0x1000),
                (IMMEDIATE[1], 1),
            ]),
            assemble(&[(END_NEXT, 1), (IMMEDIATE[0], 0x1000 | 0x40), (OUT[0][0], 5), (OUT[0][1], 3)]),
            assemble(&[(OUT[0][1], 3)]),
        ];
        let mut macros = loaded(&program);
        macros.call(0, 0).unwrap();
        macros.want(2).unwrap();
        assert!(macros.want(FIFO_WORDS + 1).unwrap_err().contains("FIFO"));
        assert_eq!(macros.step(|_| 0), Ok(Step::Read(2)));
        macros.give([11, 12]);
        assert_eq!(sent(&mut macros), [(0x100, 11), (0x104, 12)]);
    }

    #[test]
    fn branches_predicates_state_and_data_do_what_they_say() {
        let jump_if_zero = [(ALU[0][0], 29), (ALU[0][2], 0), (ALU[0][3], ZERO), (IMMEDIATE[0], 0x8000 | 2)];
        let program = [
            assemble(&[(ALU[0][1], 0), (ALU[0][2], LOAD[0]), (IMMEDIATE[1], 0x10), (OUT[0][0], 6)]),
            assemble(&jump_if_zero),
            // Not for zero: the state of method 4 * 5.
            assemble(&[(ALU[0][0], 22), (ALU[0][2], OWN_IMMEDIATE), (IMMEDIATE[0], 5), (OUT[0][1], 1)]),
            assemble(&[(ALU[0][0], 31), (ALU[0][2], ZERO), (ALU[0][3], OWN_IMMEDIATE), (IMMEDIATE[0], 9)]),
            // For zero only: word 0 of the data.
            assemble(&[
                (PREDICATE_MODE, 2),
                (PREDICATE, 0),
                (ALU[0][0], 30),
                (ALU[0][2], ZERO),
                (OUT[0][1], 1),
            ]),
            assemble(&[(END_NEXT, 1)]),
            assemble(&[]),
        ];
        let mut macros = loaded(&program);
        macros.call(0, 1).unwrap();
        assert_eq!(sent(&mut macros), [(0x40, 21)]);
        macros.call(0, 0).unwrap();
        assert_eq!(sent(&mut macros), [(0x40, 9)]);
    }

    #[test]
    fn what_is_wrong_is_said_and_a_program_without_an_end_ends() {
        let mut macros = loaded(&[assemble(&[(ALU[0][0], 24), (IMMEDIATE[0], 0x8000)])]);
        assert!(macros.call(1, 0).unwrap_err().contains("never loaded"));
        assert!(macros.parameter(0).is_err());
        macros.call(0, 0).unwrap();
        assert!(macros.call(0, 0).unwrap_err().contains("awaits"));
        assert!(macros.step(|_| 0).unwrap_err().contains("more than"));
        let mut macros = loaded(&[assemble(&[(OUT[0][1], 5)])]);
        macros.call(0, 0).unwrap();
        assert!(macros.step(|_| 0).unwrap_err().contains("before any method"));
    }
}
