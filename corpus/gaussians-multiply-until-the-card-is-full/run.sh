bash scene_generation/iphone/polycam_scenes.sh <POLYCAM_PATH>
