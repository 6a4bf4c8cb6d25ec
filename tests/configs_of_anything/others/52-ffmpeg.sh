#!/bin/bash
ffmpeg -i in.mp4 -vf scale=1280:720 -frames 120 -threads 8 out.mp4
