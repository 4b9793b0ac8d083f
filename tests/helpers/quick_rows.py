"""Which rows `python -m pytest` runs; the others have the mark `whole`.

A test of many rows keeps enough of them that every value of every parameter is met once on the cpu and once on a GPU:
each op, dtype and layout, but not each of their combinations. Of the tests in SLOW so many of these rows are kept, of
those in EACH_OP one row of each op and device, of those in EACH_KIND one of each dtype and layout of an op too.
"""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from collections.abc import Iterable

import pytest

# What takes long: searches for what no table lists, and tests of the tests.
SLOW = {
    "test_alloc_failures.py::test_a_planted_failure_is_found": 0,
    "test_alloc_failures.py::test_every_allocation_of_every_op": 0,
    "test_alloc_failures.py::test_less_and_less_memory": 0,
    "test_backward_faults.py::test_calls_of_cuda": 1,
    "test_backward_faults.py::test_no_allocation_that_fails_in_a_gradient_leaves_a_block": 60,
    "test_conformance.py::test_conformance_list": 0,
    "test_conformance.py::test_simulated_table": 0,
    "test_cpu_loops.py::test_every_set_gives_the_same_bits": 0,
    "test_cpu_loops.py::test_the_case_table_with_every_set": 0,
    "test_cpu_products.py::test_nothing_beyond_an_operand_is_touched": 1,
    "test_cuda_faults.py::test_every_call_of_every_program": 0,
    "test_cuda_faults.py::test_planted_mistakes_are_found": 0,
    "test_cuda_faults.py::test_the_programs_reach_every_call": 0,
    "test_cuda_loader.py::test_a_copy_that_is_too_old_is_passed_over": 2,
    "test_cuda_loader.py::test_a_driver_that_does_not_start": 1,
    "test_cuda_loader.py::test_a_missing_library": 2,
    "test_cuda_loader.py::test_an_old_version": 1,
    "test_cuda_loader.py::test_each_missing_symbol": 0,
    "test_cuda_loader.py::test_garbage": 2,
    "test_cuda_loader.py::test_places_named_by_variables": 2,
    "test_cuda_loader.py::test_the_hazard_of_cublas": 1,
    "test_cuda_loader.py::test_the_order": 0,
    "test_cuda_loader.py::test_wheels": 2,
    "test_cuda_memory.py::test_the_case_table": 0,
    "test_cuda_order.py::test_a_wait_that_is_left_out_shows": 0,
    "test_cuda_plans.py::test_many_plans_are_kept": 0,
    "test_cuda_room.py::test_a_plan_that_finds_no_memory_for_its_code": 0,
    "test_cuda_room.py::test_what_is_cached_makes_room_for_the_driver_too": 4,
    "test_data.py::test_other_ways_to_sample": 0,
    "test_data_cells.py::test_a_dataset_of_the_program_itself": 1,
    "test_data_cells.py::test_modules_need_no_cloudpickle": 1,
    "test_data_workers.py::test_a_worker_that_hangs": 0,
    "test_data_workers.py::test_an_interrupted_epoch_ends_as_any_program": 2,
    "test_diagnosis_random.py::test_fixes_of_random_programs": 2,
    "test_digits.py::test_plot": 0,
    "test_digits.py::test_plot_to_a_missing_folder": 0,
    "test_digits.py::test_training_on_the_cpu_alone": 0,
    "test_digits.py::test_training_reads_the_digits": 0,
    "test_dlpack_lifetime.py::test_theirs_released_in_every_order": 3,
    "test_distributed.py::test_losses_are_those_of_one_process": 1,
    "test_error_operands.py::test_devices": 25,
    "test_error_operands.py::test_dtypes": 25,
    "test_error_operands.py::test_shapes": 25,
    "test_explain_torch.py::test_a_script_as_it_is": 1,
    "test_explain_torch.py::test_ipython": 0,
    "test_explain_torch.py::test_pytest": 0,
    "test_explain_torch_rebound.py::test_a_script_that_nothing_catches": 0,
    "test_first_day.py::test_friction": 3,
    "test_files.py::test_ctrl_c_anywhere_leaves_the_old_file_or_the_new_one": 1,
    "test_files.py::test_kill_anywhere_leaves_the_old_file_or_the_new_one": 0,
    "test_fuzz.py::test_a_finding_is_replayed_by_its_line": 0,
    "test_fuzz.py::test_a_planted_bug_is_found": 0,
    "test_fuzz.py::test_each_kind_finds_a_planted_bug": 0,
    "test_fuzz.py::test_no_call_is_a_finding": 3,
    "test_fuzz_files.py::test_a_planted_bug_is_found": 0,
    "test_fuzz_files.py::test_mutated_files": 0,
    "test_gradients.py::test_a_gradient_of_drawn_layouts_leaves_nothing": 80,
    "test_gradients.py::test_each_operand_alone_has_its_gradient": 80,
    "test_gradients.py::test_a_gradient_has_a_gradient": 40,
    "test_fuzz_threads.py::test_a_planted_bug_of_interrupts_is_found": 0,
    "test_fuzz_threads.py::test_a_planted_leak_of_a_thread_is_found": 0,
    "test_fuzz_threads.py::test_interrupts_at_any_moment": 4,
    "test_gpu_check.py::test_a_file_that_poisons_the_device_ends_alone": 0,
    "test_gpu_check.py::test_a_probe_that_fails_gates_nothing_and_is_repeated_when_asked": 0,
    "test_gpu_check.py::test_stopped_in_the_middle_it_leaves_what_it_has_and_goes_on_later": 0,
    "test_hostile_objects.py::test_a_list_that_its_entries_clear": 6,
    "test_hostile_objects.py::test_operands_that_nobody_else_holds": 6,
    "test_hostile_parameters.py::test_every_device_says_the_same": 0,
    "test_hostile_parameters.py::test_no_number_makes_a_call_long": 1,
    "test_import.py::test_a_choice_of_cuda_that_is_no_text": 1,
    "test_import.py::test_a_variable_that_is_not_understood_changes_nothing_and_is_told_once": 4,
    "test_import.py::test_exit_is_silent": 4,
    "test_import.py::test_import_never_fails": 3,
    "test_import.py::test_where_warnings_are_errors_it_ends_the_import": 4,
    "test_instructions.py::test_an_addition_without_gradients": 0,
    "test_kernel_cache.py::test_a_directory_where_others_write_is_not_used": 3,
    "test_kernel_cache.py::test_a_link_is_not_followed": 2,
    "test_kernel_cache.py::test_an_altered_file_is_made_again": 1,
    "test_kernel_cache.py::test_kill_while_a_file_is_written_leaves_nothing_that_is_read": 2,
    "test_kernel_sandbox.py::test_a_constructor_without_end": 0,
    "test_kernel_sandbox.py::test_a_kernel_without_end": 0,
    "test_kernel_sandbox.py::test_a_source_that_includes_without_end": 0,
    "test_kernel_sandbox.py::test_no_compiler_drops_what_is_undefined": 0,
    "test_kernel_sandbox.py::test_what_a_source_may_declare_beside_its_kernel": 1,
    "test_kernel_sandbox.py::test_what_is_told": 6,
    "test_kernel_sandbox.py::test_with_shared_libraries": 0,
    "test_kernel_source.py::test_any_text_is_read_or_refused": 0,
    "test_kernels.py::test_blocks_of_many_threads": 0,
    "test_keywords.py::test_every_keyword_does_something": 0,
    "test_learning.py::test_prints_what_pytorch_prints": 7,
    "test_leaks.py::test_a_planted_leak_is_found": 0,
    "test_leaks.py::test_error_paths": 4,
    "test_leaks.py::test_interchange": 4,
    "test_leaks.py::test_ops": 12,
    "test_leaks.py::test_other_errors": 6,
    "test_lifetime.py::test_views_keep_their_storage": 4,
    "test_lr_scheduler.py::test_one_that_begins_later_is_pytorchs": 5,
    "test_notebook.py::test_in_a_kernel": 0,
    "test_pickle.py::test_processes": 2,
    "test_pytest_foreign.py::test_foreign_suites_run_as_without_it": 2,
    "test_pytest_foreign.py::test_it_is_found_as_installed": 0,
    "test_pytest_foreign.py::test_short_names_are_for_suites_that_ask": 1,
    "test_pytest_plugin.py::test_the_example_finds_mistakes": 2,
    "test_quick.py::test_a_file_that_is_named_runs_whole": 0,
    "test_raw_kernel.py::test_compiled_kernels_are_kept": 0,
    "test_raw_kernel.py::test_faults": 3,
    "test_raw_kernel.py::test_kernels": 4,
    "test_raw_options.py::test_macros_and_folders": 2,
    "test_recurrent_torch.py::test_layers": 6,
    "test_select.py::test_any_key": 0,
    "test_shutdown.py::test_exits": 6,
    "test_shutdown.py::test_forks": 4,
    "test_situations.py::test_page": 0,
    "test_torch_samples.py::test_each_row_differs": 0,
    "test_torch_samples.py::test_most_of_it_agrees": 0,
    "test_torch_samples.py::test_nothing_else_differs": 0,
    "test_transfer.py::test_around_the_size_of_a_slot": 3,
    "test_transfer.py::test_large_strided_sources_and_targets": 2,
    "test_transfer.py::test_no_failure_takes_a_slot_away": 4,
    "test_transfer.py::test_unused_pinned_memory_is_bounded": 0,
    "test_typing.py::test_programs_run": 2,
    "test_typing.py::test_programs_use_every_public_name": 0,
    "test_zero_sizes.py::test_conv1d": 2,
    "test_zero_sizes.py::test_conv2d": 2,
    "test_zero_sizes.py::test_every_row_has_a_variant_with_an_answer": 0,
    "test_zero_sizes.py::test_others_are_the_same_on_every_device": 8,
    "test_zero_sizes.py::test_reductions": 4,
}

# The files that take longest, quick or whole.
NAMES = """leaks torch_samples cuda_faults fuzz error_operands gradients kernel_sandbox ops keywords kernels conformance
import run fuzz_threads zero_sizes gpu_check cuda_loader transfer kernel_cache raw_kernel docs backward_faults order
data_workers data_cells cuda_memory cuda_room cpu_loops""".split()
LONGEST = {f"test_{name}.py": place for place, name in enumerate(NAMES)}

# One row of an op shows what these ask, on each device; the values of all its rows are test_ops.py::test_function's.
EACH_OP = {
    "test_layouts.py::test_a_target_that_shares_memory_with_an_operand",
    "test_layouts.py::test_in_place",
    "test_layouts.py::test_operands",
    "test_layouts.py::test_operands_that_share_memory",
    "test_layouts.py::test_out",
    "test_no_hidden_transfers.py::test_no_case_moves_anything",
    "test_ops.py::test_method",
    "test_pending.py::test_every_op_waits",
    "test_reference.py::test_every_case_has_an_answer",
    "test_zero_sizes.py::test_function",
    "test_zero_sizes.py::test_in_place",
    "test_zero_sizes.py::test_out",
}

# Of these, rows of an op until each of its dtypes in each layout, broadcasting and no elements are met.
EACH_KIND = {
    "test_ops.py::test_in_place",
    "test_ops.py::test_in_place_operator",
    "test_ops.py::test_operator",
    "test_ops.py::test_out",
}


def rows_to_keep(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    met: set[tuple[object, ...]] = set()
    kept: set[pytest.Item] = set()
    rows: Counter[str] = Counter()
    for item in sorted(items, key=lambda item: zlib.crc32(item.nodeid.encode())):  # not always the same combinations
        test = item.nodeid.partition("[")[0].rpartition("/")[2]
        values = values_of(item, test)
        if values <= met or rows[test] == SLOW.get(test):
            continue
        kept.add(item)
        met |= values
        rows[test] += 1
    return kept


def values_of(item: pytest.Item, test: str) -> set[tuple[object, ...]]:
    """What a row shows: its test with each value, on its device. A value is what one parametrize gave."""
    spec = getattr(item, "callspec", None)
    if spec is None:
        return {(test,)}
    on_the_cpu = spec.params.get("device", spec.params.get("cuda")) == "cpu"
    if test in EACH_KIND:
        case = spec.params["case"]
        shapes = {o.shape for o in case.arrays}
        form = "empty" if any(0 in shape for shape in shapes) else f"{len(shapes)} shapes"
        kinds = [(form,), *itertools.product(case.dtypes, case.layouts)]
        return {(test, on_the_cpu, case.op, *kind) for kind in kinds}
    values = (value.partition("(")[0] if test in EACH_OP else value for value in spec._idlist)
    return {(test, on_the_cpu, *value) for value in enumerate(values)}
