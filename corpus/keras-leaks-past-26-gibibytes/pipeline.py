image = kfp.containers.build_image_from_working_dir(
    image_name='eu.gcr.io/MY_PROJ/MY_IMAGE',
    file_filter_re=r'.*\.ipynb',
    timeout=3*60*60 # 3 hours
)

my_model_op = kfp.components.func_to_container_op(func=bb_make_model, base_image=image)

make_model = my_model_op(args_here)

cpu_request = cpu_limit = '15'
memory_request = memory_limit = '26Gi'
make_model.container.add_resource_request('cpu', cpu_request)
make_model.container.add_resource_request('memory', memory_request)
make_model.container.add_resource_limit('cpu', cpu_limit)
make_model.container.add_resource_limit('memory', memory_limit)
