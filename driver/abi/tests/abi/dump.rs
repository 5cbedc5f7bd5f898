//! The text of pushbuffers, ring entries, launch descriptors, constant banks and calls, as a reviewer meets it.
use fixtures::{
    properties,
    property::{any, list, within},
};
use nv_abi::{
    Branch, Record,
    arch::Generation,
    compute::AMPERE_COMPUTE_A as compute,
    copy::AMPERE_DMA_COPY_B as copy,
    dump::{self, Subchannels},
    gpfifo::Entry,
    host::AMPERE_CHANNEL_GPFIFO_A as host,
    ioctl,
    method::{Form, Header, Method, class_table},
    qmd::{ConstantBuffer, Dependent, Qmd, Release, StructureSize, Version},
    rm::{class, control, frontend::NVOS54_PARAMETERS},
};

fn send(out: &mut Vec<u32>, form: Form, subchannel: u8, method: Method, data: &[u32]) {
    let header = Header { form, subchannel, address: method.address, count: data.len() as u32 };
    out.push(header.encode().unwrap());
    out.extend(data);
}

#[test]
fn a_pushbuffer_reads_as_its_methods() {
    let mut words = Vec::new();
    let increment = Form::Increment;
    send(&mut words, increment, 1, host::SET_OBJECT, &[class::ADA_COMPUTE_A]);
    send(&mut words, increment, 4, host::SET_OBJECT, &[class::AMPERE_DMA_COPY_B]);
    // Waits for 5, uploads a block, starts a descriptor, releases 6 with the time.
    send(&mut words, increment, 0, host::SEM_ADDR_LO, &[0x30_4010, 0x10, 5, 0, 0x0100_1003]);
    send(&mut words, increment, 1, compute::LINE_LENGTH_IN, &[0x60, 1, 0x10, 0x0040_0000]);
    send(&mut words, increment, 1, compute::LAUNCH_DMA, &[0x41]);
    let block: Vec<u32> =
        (0..24u32).map(|index| if index < 16 { 0 } else { 0x1111_1111 * (index - 15) }).collect();
    send(&mut words, Form::NonIncrement, 1, compute::LOAD_INLINE_DATA, &block);
    send(&mut words, increment, 1, compute::INVALIDATE_SHADER_CACHES_NO_WFI, &[0x1011]);
    send(&mut words, increment, 1, compute::SEND_PCAS_A, &[0x1000_4000]);
    send(&mut words, increment, 1, compute::SEND_SIGNALING_PCAS2_B, &[9]);
    send(&mut words, increment, 0, host::SEM_ADDR_LO, &[0x30_4010, 0x10, 6, 0, 0x0310_0001]);
    send(&mut words, increment, 4, copy::OFFSET_IN_UPPER, &[0x10, 0x1000, 0x10, 0x2000]);
    send(&mut words, increment, 4, copy::LINE_LENGTH_IN, &[4096]);
    send(&mut words, increment, 4, copy::LAUNCH_DMA, &[0x182]);
    words.extend([0; 4]);
    words.push(Header { form: Form::EndSegment, subchannel: 0, address: 0, count: 0 }.encode().unwrap());
    insta::assert_snapshot!(dump::pushbuffer(&words, &mut Subchannels::new(Generation::Ada)));
}

#[test]
fn what_no_row_explains_is_shown_and_marked() {
    let unknown = Header { form: Form::Increment, subchannel: 1, address: 0x600, count: 1 };
    let immediate = Header { form: Form::Immediate(0x1fff), subchannel: 2, address: 0x110, count: 0 };
    let early = Header { form: Form::Increment, subchannel: 1, address: 0x180, count: 3 };
    let words = [
        unknown.encode().unwrap(),
        7,
        immediate.encode().unwrap(),
        Header { form: Form::Increment, subchannel: 0, address: 0x6c, count: 1 }.encode().unwrap(),
        0x0000_0807,
        early.encode().unwrap(),
        64,
    ];
    let mut subchannels = Subchannels::new(Generation::Ada);
    subchannels.bind(1, class::ADA_COMPUTE_A);
    let text =
        dump::pushbuffer(&words, &mut subchannels) + &dump::pushbuffer(&[0xc000_0000], &mut subchannels);
    insta::assert_snapshot!(text);
}

#[test]
fn ring_entries_read_as_segments_and_controls() {
    let segment = Entry::segment(0x10_0030_4000, 26).encode().unwrap();
    assert_eq!(dump::entry(segment), "segment 0x1000304000, 26 words");
    assert_eq!(
        dump::entry(segment | 1 << 41 | 1 << 63),
        "segment 0x1000304000, 26 words, subroutine, after the one before"
    );
    assert_eq!(dump::entry(0), "control NOP, operand 0x0");
    assert_eq!(dump::entry(0x77_0000_0001), "control 119 (no such value), operand 0x1");
}

fn launch(version: Version) -> Qmd {
    let mut qmd = Qmd::new(version);
    qmd.set_grid([1000, 2, 1]).unwrap();
    qmd.set_block([256, 1, 1]).unwrap();
    qmd.set_program(0x10_0020_4000, 0x1000).unwrap();
    qmd.set_registers(32).unwrap();
    qmd.set_barriers(1).unwrap();
    qmd.set_shared_memory(0x400, [3, 26, 3]).unwrap();
    qmd.set_local_memory(0x240).unwrap();
    qmd.set_constant_buffer(0, ConstantBuffer { address: 0x10_0040_0000, bytes: 0x178 }).unwrap();
    let release = Release {
        address: 0x10_0030_4010,
        payload: 6,
        structure_size: StructureSize::FourWords,
        payload_64: true,
        membar: true,
        reduction: None,
        trap_type: 0,
    };
    qmd.set_release(0, Some(release)).unwrap();
    qmd.set_dependent(0, Some(Dependent { address: 0x10_0041_0000, action: 1, prefetch: true })).unwrap();
    qmd
}

#[test]
fn a_descriptor_reads_as_a_launch_in_every_version() {
    let texts = Version::ALL.map(|version| dump::qmd(version, launch(version).bytes()).unwrap());
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn a_descriptor_of_another_version_is_shown_with_the_reason() {
    let text = dump::qmd(Version::V03_00, &launch(Version::V04_00).bytes()[..256]).unwrap();
    assert!(text.contains("not executable: QMD of version 04_00 where V03_00 is taken"), "{text}");
    assert!(dump::qmd(Version::V04_00, &[0; 256]).is_err());
}

#[test]
fn a_constant_bank_reads_as_its_slots() {
    let mut bytes = vec![0u8; 0x174];
    for (offset, word) in [
        (0, 256u32),
        (4, 1),
        (8, 1),
        (0xc, 1000),
        (0x10, 2),
        (0x14, 1),
        (0x1c, 0x7294),
        (0x24, 0x7293),
        (0x28, 0xff_fdc0),
        (0x12c, 3),
        (0x160, 0x1000),
        (0x164, 0x10),
        (0x170, 4096),
    ] {
        bytes[offset..offset + 4].copy_from_slice(&word.to_le_bytes());
    }
    insta::assert_snapshot!(dump::constant_bank(Generation::Ada, &bytes));
}

#[test]
fn a_call_reads_as_its_struct() {
    let mut argument = Record::zeroed(&NVOS54_PARAMETERS::STRUCT, Branch::R570);
    argument.set(&NVOS54_PARAMETERS::hClient, 0xc1d0_0001).unwrap();
    argument.set(&NVOS54_PARAMETERS::cmd, control::NV2080_CTRL_CMD_GPU_GET_GID_INFO.into()).unwrap();
    argument.set(&NVOS54_PARAMETERS::status, 0x1f).unwrap();
    let request = ioctl::request(ioctl::NV_ESC_RM_CONTROL, 32);
    insta::assert_snapshot!(dump::ioctl(request, Branch::R570, argument.bytes()));
}

#[test]
fn elements_stand_where_the_branch_puts_them() {
    use nv_abi::rm::NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS as order;
    for (branch, position) in [(Branch::R570, "0x000c"), (Branch::R580, "0x0012")] {
        let mut record = Record::zeroed(&order::STRUCT, branch);
        record.set_at(&order::globalSmId_gpcId, 1, 5).unwrap();
        let text = dump::record(&record);
        assert!(text.contains(&format!("  {position}  globalSmId_gpcId[1] ")), "{text}");
    }
}

#[test]
fn numbers_of_a_call_read_as_what_their_rows_say_they_are() {
    use nv_abi::{
        rm::nv_ioctl_nvos33_parameters_with_fd as map, uvm::UVM_MAP_EXTERNAL_ALLOCATION_PARAMS as external,
    };
    let mut record = Record::zeroed(&map::STRUCT, Branch::R580);
    record.set(&map::fd, 0xffff_ffff).unwrap();
    record.set(&map::status, 0x1f).unwrap();
    let text = dump::record(&record);
    assert!(text.contains(" -1\n") && text.contains(" INVALID_ARGUMENT (0x1f)\n"), "{text}");

    // A handle in UVM's argument is known by what it was allocated as.
    let mut record = Record::zeroed(&external::STRUCT, Branch::R580);
    record.set(&external::hClient, 0xc1d0_0001).unwrap();
    record.set(&external::hMemory, 0x5c00_0010).unwrap();
    let mut handles = dump::Handles::new();
    handles.insert(0xc1d0_0001, 0x5c00_0010, class::NV01_MEMORY_LOCAL_USER);
    let call = dump::KernelCall {
        node: nv_abi::Node::Uvm,
        request: nv_abi::uvm::UVM_MAP_EXTERNAL_ALLOCATION,
        before: record.bytes(),
        after: record.bytes(),
        nested_before: &[],
        nested_after: &[],
    };
    let text = dump::kernel_call_text(&dump::kernel_call(&call, Branch::R580, &mut handles));
    assert!(text.contains("0x5c000010 (NV01_MEMORY_LOCAL_USER)\n"), "{text}");
}

#[test]
fn every_row_of_every_class_and_descriptor_sets_and_reads_back_its_extremes() {
    use nv_abi::{Bits, BitsMut, Layout, qmd::rows};
    let mut layouts: Vec<Layout> = vec![rows::V03_00::LAYOUT, rows::V04_00::LAYOUT, rows::V05_00::LAYOUT];
    let classes = [nv_abi::host::CLASSES, nv_abi::compute::CLASSES, nv_abi::copy::CLASSES];
    layouts.extend(classes.into_iter().flatten().flat_map(|class| class.methods.iter().map(|m| m.layout)));
    let mut rows = 0;
    for layout in layouts {
        for field in layout.fields {
            for index in 0..field.count {
                let mut bytes = vec![0; layout.bytes()];
                BitsMut::new(&mut bytes).set_at(field, index, field.max()).unwrap();
                assert_eq!(
                    Bits::new(&bytes).get_at(field, index),
                    Ok(field.max()),
                    "{} {}",
                    layout.name,
                    field.name
                );
                let set: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
                assert_eq!(set, field.width(), "{} {}", layout.name, field.name);
                if field.width() < 64 {
                    let over = field.max() + (1 << field.shift);
                    assert!(BitsMut::new(&mut bytes).set_at(field, index, over).is_err());
                }
            }
            assert!(Bits::new(&vec![0; layout.bytes()]).get_at(field, field.count).is_err());
            for e in field.enumerants {
                assert!(field.encode(e.value).is_ok(), "{} {} {}", layout.name, field.name, e.name);
            }
            rows += 1;
        }
    }
    assert!(rows > 900, "{rows}");
}

#[test]
fn no_two_methods_of_a_class_take_the_same_address() {
    for class in
        [nv_abi::host::CLASSES, nv_abi::compute::CLASSES, nv_abi::copy::CLASSES].into_iter().flatten()
    {
        let mut seen = std::collections::BTreeMap::new();
        for method in class.all() {
            for index in 0..method.count {
                let address = method.address + index * method.stride;
                let other = seen.insert(address, method.name);
                assert_eq!(other, None, "{} {address:#x} {}", class.name, method.name);
                let found = class_table(class.number).unwrap().method(address);
                assert_eq!(found.map(|(m, i)| (m.name, i)), Some((method.name, index)), "{}", class.name);
            }
        }
    }
}

properties! { 256 cases;
    fn any_words_have_a_text(words in list::<u32>(0..48), class in within(0usize..3)) {
        let mut subchannels = Subchannels::new(Generation::Hopper);
        let classes = [class::HOPPER_COMPUTE_A, class::HOPPER_DMA_COPY_A, 0x9b0];
        for subchannel in 0..8 {
            subchannels.bind(subchannel, classes[class]);
        }
        assert_eq!(dump::pushbuffer(&words, &mut subchannels).is_empty(), words.is_empty());
    }

    fn any_bytes_have_a_text_as_descriptor(bytes in any::<[u8; 384]>) {
        for version in Version::ALL {
            assert!(dump::qmd(version, &bytes).is_ok());
        }
    }
}
