//! The opcodes that a generation's rows know, one a line, hexadecimal.
fn main() {
    let sm = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(89);
    let known =
        sass::rows().iter().filter(|row| sass::Arch::from_sm(sm).is_some_and(|arch| row.exists_on(arch)));
    for opcode in known.map(|row| row.opcode).collect::<std::collections::BTreeSet<_>>() {
        println!("{opcode:x}");
    }
}
