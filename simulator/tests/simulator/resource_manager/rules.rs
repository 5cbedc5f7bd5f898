//! The rules of the kernel module and of the card that are simulated, each with its source and the test that holds it.
//!
//! `simulator/RULES.md` is this table; `UPDATE_RULES=1 cargo test -p nv-simulator table_of_rules` writes it anew.

use std::fmt::Write as _;

/// Where a rule is known from.
#[derive(Clone, Copy)]
enum Source {
    /// Measured on an H200, module 580.159.04.
    Measured,
    /// The same card's answers to NVIDIA's library or to tinygrad, recorded.
    Recorded,
    /// A file of NVIDIA/open-gpu-kernel-modules.
    Cited(&'static str),
    /// A file of NVIDIA/open-gpu-doc.
    Documented(&'static str),
    /// The structs of google/gvisor, `pkg/abi/nvgpu`.
    Gvisor,
}
use Source::{Cited, Documented, Gvisor, Measured, Recorded};

struct Rule {
    part: &'static str,
    rule: &'static str,
    source: Source,
    test: &'static str,
}

const fn rule(part: &'static str, rule: &'static str, source: Source, test: &'static str) -> Rule {
    Rule { part, rule, source, test }
}

const ESCAPE: Source = Cited("kernel-open/nvidia/nv.c");
const CLIENT: Source = Cited("resserv/src/rs_client.c");
const SERVER: Source = Cited("resserv/src/rs_server.c");
const CHANNEL: Source = Cited("gpu/fifo/kernel_channel.c");
const EVENT: Source = Cited("rmapi/event.c");
const UVM: Source = Cited("nvidia-uvm/uvm_va_range.c");
const PBDMA: Source = Documented("manuals/ampere/ga100/dev_pbdma.ref.txt");
const COMPUTE: Source = Documented("classes/compute/clc9c0.h");
const QMD: Source = Documented("classes/compute/clc9c0qmd.h");
const COPY: Source = Documented("classes/dma-copy/clc7b5.h");
const EXPORTS: Source = Cited("generated/g_*_nvoc.c");
const POLICY: Source = Cited("nvidia-uvm/uvm_policy.c");

#[rustfmt::skip]
const RULES: &[Rule] = &[
    rule("ioctl", "a wrong size, a wrong kind of descriptor and an unknown number are EINVAL", Measured, "frontend_errors_are_errnos"),
    rule("ioctl", "CARD_INFO with fewer entries than GPUs is EINVAL", Measured, "frontend_errors_are_errnos"),
    rule("ioctl", "an unknown UVM number is ENOSYS", Measured, "frontend_errors_are_errnos"),
    rule("ioctl", "CHECK_VERSION_STR answers the module's version also with EINVAL", Measured, "check_version_answers_the_modules_version_also_on_failure"),
    rule("ioctl", "REGISTER_FD: once, with a control file that is not registered, not with itself", Measured, "a_descriptor_is_registered_once_and_only_with_a_control_file"),
    rule("ioctl", "RM_ALLOC_MEMORY needs a registered GPU descriptor, flags and mapped pages", ESCAPE, "an_os_descriptor_needs_a_registered_descriptor_and_mapped_pages"),
    rule("ioctl", "one CPU mapping per descriptor, of the right node and exact size", ESCAPE, "one_cpu_mapping_per_descriptor_of_the_right_node_and_size"),
    rule("ioctl", "RM_MAP_MEMORY answers how it mapped in its flags", Recorded, "libcuda_gets_the_answers_that_the_card_gave"),
    rule("ioctl", "SYS_PARAMS: another second value is EBUSY", ESCAPE, "the_memory_block_size_stays_what_it_was_first"),
    rule("ioctl", "ATTACH_GPUS_TO_FD: once, known GPUs; it attaches without an open node", ESCAPE, "gpus_are_attached_once_to_a_control_file"),
    rule("ioctl", "IOCTL_XFER_CMD carries a call by pointer", ESCAPE, "a_call_may_come_in_an_envelope"),
    rule("ioctl", "what is not simulated is refused and listed", ESCAPE, "ioctls_that_are_not_simulated_are_refused_and_listed"),
    rule("handles", "clients from 0xc1d00000, objects from 0xcaf00000; any free handle may be chosen", Measured, "handles_are_given_from_the_modules_ranges"),
    rule("handles", "a client's handles are bound to its file", CLIENT, "another_files_clients_are_invalid"),
    rule("handles", "a channel group takes two handles more", Recorded, "tinygrad_gets_the_answers_that_the_card_gave"),
    rule("alloc", "order of checks: class, parameters, client, parent, single, parent's class, handle", Measured, "allocation_checks_come_in_the_modules_order"),
    rule("alloc", "classes of root and of the kernel are 0x1b to others", CLIENT, "classes_of_root_and_of_the_kernel_are_refused_to_others"),
    rule("alloc", "what is not simulated is refused and listed", Cited("rmapi/resource_list.h"), "a_class_that_is_not_simulated_is_refused_and_remembered"),
    rule("alloc", "sizes are rounded to pages, attributes filled in", Recorded, "libcuda_gets_the_answers_that_the_card_gave"),
    rule("alloc", "video memory: huge pages from 2 MiB on, else big ones; alignments by hint and by force", Cited("gpu/mem_mgr/arch/maxwell/mem_mgr_gm107.c"), "video_memory_comes_in_big_pages_and_aligned_to_them"),
    rule("alloc", "subcontexts are given out from the top", Recorded, "libcuda_gets_the_answers_that_the_card_gave"),
    rule("alloc", "a context DMA lies inside its memory and is lost with it", Cited("gpu/mem_mgr/context_dma.c"), "a_context_dma_is_a_window_inside_its_memory"),
    rule("alloc", "an NV50_MEMORY_VIRTUAL keeps its addresses while nothing is mapped there", Cited("mem_mgr/virtual_mem.c"), "virtual_ranges_are_kept_apart_while_nothing_is_mapped_there"),
    rule("alloc", "RM_VID_HEAP_CONTROL allocates, frees, and tells the heap's state", Cited("mem_mgr/video_mem.c"), "the_heap_control_allocates_tells_and_frees"),
    rule("free", "children and dependants go first; a second time is no error", Measured, "freeing_takes_the_children_and_a_second_time_is_no_error"),
    rule("free", "closing the control file frees its clients", CLIENT, "closing_the_control_file_frees_its_clients"),
    rule("free", "what depends on a freed object and is not below it is lost: RESOURCE_LOST, until its handle is freed", SERVER, "what_depends_on_a_freed_object_is_lost_and_keeps_its_handle"),
    rule("free", "a channel is lost with its USERD memory, context share or address space, not with its notifiers", CHANNEL, "a_channel_is_lost_with_the_memory_of_its_userd"),
    rule("channel", "without memory for USERD the module gives its own, mapped as the channel", CHANNEL, "the_module_gives_userd_to_a_channel_without_memory_for_it"),
    rule("free", "nothing is left after any sequence of calls", SERVER, "nothing_is_left_when_a_sequence_is_over"),
    rule("share", "RM_DUP_OBJECT: clients, source, parent, kind, handle, right", SERVER, "duplication_checks_come_in_the_modules_order"),
    rule("share", "another client's object needs the right to duplicate", SERVER, "another_clients_object_needs_the_right_which_share_policies_give_and_take"),
    rule("share", "objects without policies follow their client's inherited one", CLIENT, "objects_without_policies_follow_their_clients_inherited_one"),
    rule("share", "an exported object outlives its handle", Cited("arch/nvalloc/unix/src/rmobjexportimport.c"), "a_descriptor_carries_an_object_to_another_client"),
    rule("control", "some answers are kept, and given to any object of the GPU before its class is looked at", Measured, "a_kept_answer_is_given_before_the_class_is_looked_at"),
    rule("control", "order of checks: null command, client, pointer and size, size of the command, object, export", Measured, "control_checks_come_in_the_modules_order"),
    rule("control", "a bad parameters pointer is EFAULT", Cited("rmapi/param_copy.c"), "a_bad_parameters_pointer_is_efault"),
    rule("control", "every answer to libcuda and tinygrad is the card's", Recorded, "libcuda_gets_the_answers_that_the_card_gave"),
    rule("control", "what NVIDIA's library asks for without a public name is accepted, and listed", Recorded, "a_control_without_a_public_name_is_answered_as_the_card_did_and_listed"),
    rule("control", "GPFIFO_SCHEDULE has 2 bytes before 580 and 3 from it on", Measured, "gpfifo_schedule_is_two_bytes_before_580_and_three_from_it_on"),
    rule("control", "each is exported by one class or its base; the older forms are turned into the newer before their size is looked at", EXPORTS, "every_control_checks_its_size_and_is_answered_or_refused_and_listed"),
    rule("control", "root's are 0x1b to others", EXPORTS, "controls_for_root_are_refused_to_others"),
    rule("control", "tables of capabilities have exactly their length", Cited("gpu/fifo/kernel_fifo_ctrl.c"), "tables_of_capabilities_have_exactly_their_length"),
    rule("control", "older lists are limited by the room of the newer form: 0x5b", Cited("interface/deprecated/rmapi_deprecated_control.c"), "lists_of_the_older_form_are_limited_by_the_newer_one"),
    rule("control", "lists of information are neither empty nor too long; graphics' are cut", Cited("gpu/gr/kernel_graphics.c"), "lists_are_neither_empty_nor_longer_than_their_room"),
    rule("control", "GPU_GET_ENGINES: 0x2 without room", Cited("gpu/subdevice/subdevice_ctrl_gpu_kernel.c"), "engines_go_to_the_clients_memory_where_there_is_room"),
    rule("control", "drain, accounting, persistence, sync boards, encoders, confidential computing", Cited("rmapi/client_resource.c"), "the_machine_is_as_after_boot"),
    rule("control", "ECC is on where the GPU has it", Cited("ctrl/ctrl2080/ctrl2080gpu.h"), "ecc_is_on_where_the_gpu_has_it"),
    rule("control", "GET_SURFACE_INFO: size, attributes, place of a memory object", Cited("gpu/mem_mgr/mem_ctrl.c"), "surfaces_tell_their_size_attributes_and_place"),
    rule("control", "GET_P2P_CAPS: over NVLink or PCI; peers have numbers while NV50_P2P connects them", Cited("rmapi/client_resource.c"), "gpus_reach_each_other_over_nvlink_or_pci_and_have_numbers_while_connected"),
    rule("control", "GPU_GET_PIDS and GPU_GET_PID_INFO: who uses the GPU, and how much memory", Cited("gpu/gpu_rmapi.c"), "processes_are_told_by_what_they_have_on_the_gpu"),
    rule("control", "FIFO_DISABLE_CHANNELS takes channels off their runlist; the event is the kernel's", Cited("gpu/fifo/kernel_fifo_ctrl.c"), "channels_are_taken_off_their_runlist_and_put_back"),
    rule("control", "SET_ERROR_NOTIFIER writes notifiers and ends nothing", CHANNEL, "a_client_may_have_its_notifiers_written"),
    rule("control", "DEBUG_READ_MEMORY: the client's memory, inside its size", Cited("gpu/gr/kernel_sm_debugger_session_ctrl.c"), "a_debugger_reads_the_clients_memory"),
    rule("control", "GET_BUILD_VERSION: the length where a buffer is missing, 0x3a where it does not fit", Cited("interface/deprecated/rmapi_deprecated_control.c"), "a_version_that_does_not_fit_says_how_long_it_is"),
    rule("share", "EXPORT_OBJECTS_TO_FD, IMPORT_OBJECTS_FROM_FD: places, one device, all or none", Cited("arch/nvalloc/unix/src/os.c"), "descriptors_carry_many_objects_in_places"),
    rule("alloc", "profiling is for root", Cited("gpu/hwpm/profiler_v1/kern_profiler_v1.c"), "profiling_is_for_root"),
    rule("alloc", "parts of a GPU (MIG) and fabric memory are 0x56 on a whole GPU without a fabric", Cited("gpu/mig_mgr/gpu_instance_subscription.c"), "a_whole_gpu_without_a_fabric_has_no_parts_and_no_fabric_memory"),
    rule("channel", "construction checks: context share, address space, engine, notifier, flags, ring", CHANNEL, "a_channel_is_built_scheduled_and_registered"),
    rule("channel", "a context share needs a space that UVM owns", Measured, "uvm_registers_each_gpu_and_address_space_once"),
    rule("channel", "the token carries runlist and channel id, the first id is 10", Measured, "a_channel_is_built_scheduled_and_registered"),
    rule("channel", "RESET_CHANNEL, time slices, GET_CLASS_ENGINEID", Cited("ctrl/ctrl906f.h"), "channels_are_reset_stopped_and_described_by_controls"),
    rule("event", "ALLOC_OS_EVENT once per client and descriptor", Measured, "an_os_event_is_made_once_per_client_and_descriptor"),
    rule("event", "kernel callbacks are not for clients; a notifier is armed once", EVENT, "an_event_object_needs_its_descriptor_and_a_notifier_is_armed_once"),
    rule("event", "RC_ERROR carries the Xid, info16 is 0xe9", Measured, "each_measured_stimulus_gives_its_xid_notifier_event_and_a_silent_ring"),
    rule("event", "a single shot fires once; a data-less event is taken by one poll", EVENT, "a_single_shot_notifier_fires_once_and_a_data_less_event_is_taken_by_one_poll"),
    rule("event", "non-stall interrupts need no arming", Cited("gpu/subdevice/subdevice_ctrl_event_kernel.c"), "a_non_stall_interrupt_wakes_who_waits_for_the_engine"),
    rule("event", "closing the descriptor or freeing the client ends its events", Cited("arch/nvalloc/unix/src/osapi.c"), "closing_a_descriptor_or_freeing_the_client_ends_its_events"),
    rule("fault", "Xid, notifier of the whole group, event, silent ring; others go on; a new group works", Measured, "each_measured_stimulus_gives_its_xid_notifier_event_and_a_silent_ring"),
    rule("fault", "GET_MMU_FAULT_INFO: the page's address, type and name", Measured, "the_mmu_fault_is_told_by_the_channel_and_by_the_debugger"),
    rule("fault", "warp exceptions as SM error states: ESR, PC, address", Cited("ctrl/ctrl83de/ctrl83dedebug.h"), "a_warp_exception_is_an_sm_error_state_until_it_is_cleared"),
    rule("fault", "the notifier may come late, or never", Measured, "a_fault_may_be_told_late_or_never"),
    rule("uvm", "INITIALIZE: idempotent with the same flags; everything else needs it", Measured, "uvm_wants_to_be_initialised_once_with_the_same_flags"),
    rule("uvm", "MM_INITIALIZE: on a second descriptor, once; 0x5d after it closed", Measured, "uvm_wants_to_be_initialised_once_with_the_same_flags"),
    rule("uvm", "REGISTER_GPU and REGISTER_GPU_VASPACE: once, known, externally owned", Measured, "uvm_registers_each_gpu_and_address_space_once"),
    rule("uvm", "external ranges: alignment, overlap, exact free and validate", Measured, "external_ranges_do_not_overlap_and_are_freed_exactly"),
    rule("uvm", "MAP_EXTERNAL_ALLOCATION: order of checks, replace at page size, lifetime", Measured, "mapping_replaces_at_page_size_and_outlives_the_handle"),
    rule("uvm", "MAP_EXTERNAL_ALLOCATION: counts and types before GPUs, GPUs before addresses", Measured, "mapping_attributes_are_checked_before_gpus_and_addresses"),
    rule("uvm", "REGISTER_CHANNEL and UNREGISTER_CHANNEL: GPU, channel, room for buffers, once", Cited("nvidia-uvm/uvm_user_channel.c"), "a_channel_is_registered_where_its_buffers_have_room"),
    rule("uvm", "every call is answered, or refused and listed", Cited("nvidia-uvm/uvm_linux_ioctl.h"), "every_uvm_call_is_answered_or_refused_and_listed"),
    rule("uvm", "channels of one group share their buffers' range", Recorded, "libcuda_gets_the_answers_that_the_card_gave"),
    rule("uvm", "GPUs behind NVLink are peers from the start and cannot be made or unmade", Measured, "gpus_behind_nvlink_are_peers_from_the_start"),
    rule("uvm", "peer access: a pair, once; the mappings end with it", UVM, "peers_memory_goes_when_peer_access_ends"),
    rule("uvm", "mmap makes managed memory; offset is address; munmap frees it", Cited("nvidia-uvm/uvm.c"), "managed_memory_is_one_for_cpu_and_gpu"),
    rule("uvm", "managed memory is there for GPUs that come later", UVM, "managed_memory_made_before_a_gpu_came_is_mapped_for_it"),
    rule("uvm", "policies need managed memory without gaps and cut ranges", POLICY, "policies_need_managed_memory_without_gaps"),
    rule("uvm", "MIGRATE: order of checks, semaphore in a pool", Cited("nvidia-uvm/uvm_migrate.c"), "migration_moves_no_byte_and_releases_its_semaphore"),
    rule("uvm", "semaphore pools are mapped for all GPUs and by mmap", UVM, "every_gpu_reaches_a_semaphore_pool"),
    rule("uvm", "range groups: ids from 1, prevention needs a preferred location", Cited("nvidia-uvm/uvm_range_group.c"), "range_groups_are_counted_up_and_forbid_migration_only_to_memory_with_a_home"),
    rule("uvm", "MAP_DYNAMIC_PARALLELISM_REGION: one page of the MMU", UVM, "a_sked_window_covers_one_page_of_the_mmu"),
    rule("uvm", "atomics and pageable access of a GPU on PCI", POLICY, "atomics_and_pageable_access_answer_as_a_card_on_pci_does"),
    rule("uvm", "mmap: EBADFD without a VA space, EOPNOTSUPP for another process, EINVAL where the offset is not the address", Cited("nvidia-uvm/uvm.c"), "a_mapping_of_uvm_lies_where_its_offset_says"),
    rule("uvm", "a VA space that keeps a process's memory is for that process", Cited("nvidia-uvm/uvm.c"), "a_va_space_is_for_the_process_whose_memory_it_keeps"),
    rule("uvm", "mmap is shared and for reading and writing", Cited("nvidia-uvm/uvm.c"), "managed_memory_is_mapped_shared_and_for_both"),
    rule("uvm", "MAP_EXTERNAL_SPARSE: pages of 64 KiB, replaces, keeps nothing", Cited("nvidia-uvm/uvm_map_external.c"), "sparse_pages_replace_what_is_mapped_and_keep_nothing"),
    rule("uvm", "ALLOC_DEVICE_P2P: 0x1f, 0x26, then 0x56 while the window is write-combined", Cited("nvidia-uvm/uvm_va_range_device_p2p.c"), "device_p2p_needs_a_window_that_the_module_does_not_make_by_itself"),
    rule("uvm", "TOOLS_READ/WRITE_PROCESS_MEMORY: managed memory, counted up to the error", Cited("nvidia-uvm/uvm_tools.c"), "tools_read_and_write_managed_memory_as_far_as_it_goes"),
    rule("uvm", "TOOLS_GET_PROCESSOR_UUID_TABLE: 33 or 257 numbers, by branch", Cited("nvidia-uvm/uvm_tools.c"), "tools_know_processors_by_the_numbers_of_the_branch"),
    rule("branch", "the same flow under 535 to 610", Cited("headers at eight tags"), "bring_up_mapping_and_submission_work_under_every_branch"),
    rule("branch", "frontend structs of another branch are EINVAL", Measured, "a_frontend_struct_of_another_branch_is_einval"),
    rule("branch", "control parameters of another branch are 0x1f", Measured, "control_parameters_of_another_branch_are_invalid_argument"),
    rule("branch", "UVM copies its own size", Cited("nvidia-uvm/uvm_ioctl.h"), "uvm_copies_the_modules_own_size_whatever_the_client_was_built_for"),
    rule("branch", "range groups, atomics, DISCARD, WAIT_OPEN_COMPLETE come and go", Cited("nvidia-uvm/uvm_linux_ioctl.h"), "calls_come_and_go_with_the_branches"),
    rule("alloc", "every class: made, or refused as the module refuses it and listed; 0x22 where the branch lacks it", Cited("rmapi/resource_list.h"), "every_class_is_made_or_refused_and_listed"),
    rule("control", "every control: its size in the branch, answered or 0x56 and listed", Cited("headers at eight tags"), "every_control_checks_its_size_and_is_answered_or_refused_and_listed"),
    rule("branch", "RM_ALLOC reads the module's own size: past the end of a shorter struct", Measured, "rm_alloc_reads_the_modules_own_size_whatever_the_client_was_built_for"),
    rule("branch", "610 moves the fields of channel parameters: other clients' channels lack the client's USERD", Gvisor, "a_channel_of_a_client_of_595_lacks_its_userd_under_610_where_that_has_moved"),
    rule("fault", "ESR number, program counter, warp and address of every kind of exception", Cited("ctrl/ctrl83de/ctrl83dedebug.h"), "every_exception_of_a_warp_has_its_number_program_counter_and_address"),
    rule("fault", "illegal address, misaligned, out of range in shared and local memory, stack overflow", Cited("ctrl/ctrl83de/ctrl83dedebug.h"), "each_fault_of_a_warp_is_told_by_notifier_registers_and_report"),
    rule("fault", "a program counter outside mapped code", Cited("ctrl/ctrl83de/ctrl83dedebug.h"), "a_program_that_is_nowhere_is_an_invalid_program_counter"),
    rule("host", "an unknown token is ignored", Documented("manuals/turing/tu104/dev_usermode.ref.txt"), "an_unknown_token_rings_nothing"),
    rule("host", "the ring wraps; the get pointer follows and runs ahead", Measured, "the_ring_wraps_and_the_get_pointer_follows"),
    rule("host", "the get pointer is past entries that were not executed", Measured, "the_get_pointer_runs_ahead_of_what_is_read"),
    rule("host", "every header form; 6 is reserved", PBDMA, "every_header_form_reaches_its_methods"),
    rule("host", "data of a method may lie in the next segment", PBDMA, "data_of_a_method_may_lie_in_the_next_segment"),
    rule("host", "END_PB_SEGMENT ends the segment", PBDMA, "what_follows_an_end_of_segment_is_not_executed"),
    rule("host", "sub-device masks", PBDMA, "a_subdevice_mask_without_bit_0_keeps_methods_from_the_gpu"),
    rule("host", "releases: widths, payload extended with zeroes, time at +8", Measured, "releases_write_their_width_and_the_time"),
    rule("host", "reductions, and which widths they have", PBDMA, "every_reduction_computes_in_memory"),
    rule("host", "acquires: equal, strict, circular, and, nor", Measured, "every_acquire_blocks_until_its_condition_holds"),
    rule("host", "a plain store of the CPU lets an acquire pass", Measured, "acquire_resumes_on_plain_cpu_store"),
    rule("host", "a failed acquire blocks only its channel", PBDMA, "a_blocked_acquire_holds_only_its_channel"),
    rule("host", "acquires time out (bit 26) only on channels that ask for it", PBDMA, "an_acquire_times_out_only_on_a_channel_that_limits_it"),
    rule("host", "channel flag 27 asks for the timeout of two seconds", CHANNEL, "channels_with_an_acquire_timeout_die_of_it"),
    rule("host", "SEMAPHOREA to D", PBDMA, "the_old_semaphore_methods_work"),
    rule("host", "non-stall interrupts reach the module", PBDMA, "interrupts_reach_the_kernel_modules_side"),
    rule("host", "interrupt bits of PBDMA errors", Measured, "pbdma_faults_name_the_interrupt_bit_that_the_card_prints"),
    rule("host", "bad entries and pointers: GPENTRY, GPPTR, MMU", PBDMA, "bad_ring_entries_and_pointers_are_faults"),
    rule("host", "Xids of host, class, method and value errors", Measured, "faults_have_the_xid_of_the_card"),
    rule("host", "a fault ends its group and no other", Measured, "a_fault_ends_its_group_and_no_other"),
    rule("copy", "a copy faults on what is not mapped", Measured, "a_copy_faults_on_what_is_not_mapped"),
    rule("copy", "lines by signed pitches; a single line ignores them", COPY, "a_copy_of_several_lines_follows_signed_pitches"),
    rule("copy", "remapped components and constants", COPY, "remapped_components_are_swizzled_and_may_keep_the_target"),
    rule("copy", "a component that the source lacks is a bad value", COPY, "a_component_that_the_source_lacks_is_a_bad_value"),
    rule("copy", "semaphores of one, two and four words, and reductions", COPY, "copy_semaphores_have_one_two_or_four_words_and_reduce"),
    rule("copy", "what is not simulated is a fault that says so", COPY, "copies_that_are_not_simulated_say_so"),
    rule("compute", "inline data goes to memory", Measured, "inline_data_goes_to_memory_in_every_header_form"),
    rule("compute", "report semaphores: widths, time, reductions", COMPUTE, "report_semaphores_are_released_and_reduced"),
    rule("compute", "state is known, or has an effect that is listed", COMPUTE, "state_is_known_or_listed"),
    rule("compute", "which PCAS actions launch", COMPUTE, "every_scheduling_form_launches_and_the_others_do_not"),
    rule("compute", "dependent QMDs run after each other", QMD, "a_chain_of_dependents_runs_in_order"),
    rule("compute", "QMD releases, their sizes and reductions", QMD, "a_qmd_reaches_the_executor_and_releases_its_semaphores"),
    rule("compute", "QMD releases raise interrupts", QMD, "a_release_may_raise_an_interrupt_always_and_not_on_a_condition"),
    rule("compute", "the scheduler refuses what an SM cannot hold", QMD, "the_scheduler_refuses_what_does_not_fit_an_sm"),
    rule("compute", "Hopper hangs on V03_00 and QMD_TYPE QUEUE without an error", Measured, "hopper_hangs_on_a_version_3_descriptor_without_any_error"),
    rule("fault", "a GPU that falls off the bus: Xid 79 to all its channels, POLLHUP, GPU_IS_LOST", Cited("arch/nvalloc/unix/src/osinit.c"), "a_gpu_that_falls_off_the_bus_takes_its_channels_along"),
    rule("input", "every call of a random sequence is accepted or refused as the rules say", SERVER, "every_call_is_accepted_or_refused_as_the_rules_say"),
    rule("input", "no argument and no parameters make the module panic", SERVER, "no_argument_makes_the_module_panic"),
];

/// Every file that holds one of the tests.
const TESTS: &[&str] = &[
    include_str!("mod.rs"),
    include_str!("branches.rs"),
    include_str!("catalogue.rs"),
    include_str!("channel.rs"),
    include_str!("controls.rs"),
    include_str!("debugger.rs"),
    include_str!("../host.rs"),
    include_str!("../engine.rs"),
    include_str!("events.rs"),
    include_str!("faults.rs"),
    include_str!("frontend.rs"),
    include_str!("lost.rs"),
    include_str!("managed.rs"),
    include_str!("model.rs"),
    include_str!("sequences.rs"),
    include_str!("sharing.rs"),
    include_str!("../recordings/mod.rs"),
    include_str!("../../../preload/src/exports/map.rs"),
];

fn table() -> String {
    let mut text = String::from(
        "# Rules of the kernel module and of the card\n\n\
         What the simulated resource manager, UVM, host and engines hold to, where it is known from, and the test that\n\
         fails where it is broken. Written by `UPDATE_RULES=1 cargo test -p nv-simulator table_of_rules`.\n\n\
         | part | rule | source | test |\n| --- | --- | --- | --- |\n",
    );
    for rule in RULES {
        let source = match rule.source {
            Measured => "measured on an H200".to_owned(),
            Recorded => "recorded from an H200".to_owned(),
            Cited(file) => format!("open-gpu-kernel-modules: {file}"),
            Gvisor => "gvisor: pkg/abi/nvgpu".to_owned(),
            Documented(file) => format!("open-gpu-doc: {file}"),
        };
        let _ = writeln!(text, "| {} | {} | {source} | `{}` |", rule.part, rule.rule, rule.test);
    }
    text
}

#[test]
fn every_rule_has_a_test_of_that_name() {
    for rule in RULES {
        let head = format!("fn {}(", rule.test);
        assert!(TESTS.iter().any(|text| text.contains(&head)), "{}: no test {}", rule.rule, rule.test);
    }
}

#[test]
fn the_table_of_rules_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/RULES.md");
    if std::env::var_os("UPDATE_RULES").is_some() {
        std::fs::write(path, table()).expect("the source tree can be written");
        return;
    }
    assert!(include_str!("../../../RULES.md") == table(), "out of date: see the head of this file");
}
