"""PyTorch's parameters of what works on several devices, in several processes, and of torch.hub."""

from __future__ import annotations

# By module and name, without self.
RECORDED: dict[str, str] = {
    "nn.DataParallel": "module, device_ids=None, output_device=None, dim=0",
    "nn.parallel.DataParallel": "module, device_ids=None, output_device=None, dim=0",
    "nn.parallel.DistributedDataParallel": "module, device_ids=None, output_device=None, dim=0, "
    "broadcast_buffers=None, init_sync=True, process_group=None, bucket_cap_mb=None, find_unused_parameters=False, "
    "check_reduction=False, gradient_as_bucket_view=False, static_graph=False, delay_all_reduce_named_params=None, "
    "param_to_hook_all_reduce=None, mixed_precision=None, device_mesh=None, skip_all_reduce_unused_params=False, "
    "bucket_cap_mb_list=None, batched_grad_copy=False, forward_sync_buffers=None",
    "nn.parallel.data_parallel": "module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None",
    "nn.parallel.gather": "outputs, target_device, dim=0",
    "nn.parallel.parallel_apply": "modules, inputs, kwargs_tup=None, devices=None",
    "nn.parallel.replicate": "network, devices, detach=False",
    "nn.parallel.scatter": "inputs, target_gpus, dim=0",
    "distributed.init_process_group": "backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, "
    "store=None, group_name='', pg_options=None, device_id=None, _ranks=None",
    "distributed.destroy_process_group": "group=None",
    "distributed.is_available": "",
    "distributed.is_initialized": "",
    "distributed.is_mpi_available": "",
    "distributed.is_gloo_available": "",
    "distributed.is_nccl_available": "",
    "distributed.is_torchelastic_launched": "",
    "distributed.get_rank": "group=None",
    "distributed.get_world_size": "group=None",
    "distributed.get_backend": "group=None",
    "distributed.new_group": "ranks=None, timeout=None, backend=None, pg_options=None, "
    "use_local_synchronization=False, group_desc=None, device_id=None, sort_ranks=True",
    "distributed.barrier": "group=None, async_op=False, device_ids=None, timeout=None",
    "distributed.broadcast": "tensor, src=None, group=None, async_op=False, group_src=None",
    "distributed.all_gather": "tensor_list, tensor, group=None, async_op=False",
    "distributed.gather": "tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None",
    "distributed.get_process_group_ranks": "group",
    "distributed.get_global_rank": "group, group_rank",
    "distributed.get_group_rank": "group, global_rank",
    "distributed.scatter": "tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None",
    "distributed.broadcast_object_list": "object_list, src=None, group=None, device=None, group_src=None",
    "distributed.all_gather_object": "object_list, obj, group=None",
    "multiprocessing.spawn": "fn, args=(), nprocs=1, join=True, daemon=False, start_method='spawn'",
    "serialization.add_safe_globals": "safe_globals",
    "serialization.clear_safe_globals": "",
    "serialization.get_safe_globals": "",
    "serialization.safe_globals": "safe_globals",
    "distributed.send": "tensor, dst=None, group=None, tag=0, group_dst=None",
    "distributed.isend": "tensor, dst=None, group=None, tag=0, group_dst=None",
    "distributed.irecv": "tensor, src=None, group=None, tag=0, group_src=None",
    "distributed.all_to_all": "output_tensor_list, input_tensor_list, group=None, async_op=False",
    "distributed.all_to_all_single": "output, input, output_split_sizes=None, input_split_sizes=None, group=None, "
    "async_op=False",
    "distributed.batch_isend_irecv": "p2p_op_list",
    "distributed.scatter_object_list": "scatter_object_output_list, scatter_object_input_list=None, src=None, "
    "group=None, group_src=None",
    "distributed.monitored_barrier": "group=None, timeout=None, wait_all_ranks=False",
    "distributed.recv": "tensor, src=None, group=None, tag=0, group_src=None",
    "distributed.all_gather_into_tensor": "output_tensor, input_tensor, group=None, async_op=False",
    "distributed.gather_object": "obj, object_gather_list=None, dst=None, group=None, group_dst=None",
    "distributed.get_node_local_rank": "fallback_rank=None",
    "distributed.is_backend_available": "backend",
    "hub.download_url_to_file": "url, dst, hash_prefix=None, progress=True",
    "hub.get_dir": "",
    "hub.set_dir": "d",
    "hub.load": "repo_or_dir, model, *args, source='github', trust_repo='check', force_reload=False, verbose=True, "
    "skip_validation=False, **kwargs",
    "hub.list": "github, force_reload=False, skip_validation=False, trust_repo='check', verbose=True",
    "hub.help": "github, model, force_reload=False, skip_validation=False, trust_repo='check'",
    "hub.load_state_dict_from_url": "url, model_dir=None, map_location=None, progress=True, check_hash=False, "
    "file_name=None, weights_only=False",
}
