#!/bin/bash
for f in raw/*.mp4; do
  ffmpeg -hwaccel cuda -i "$f" -vf scale=1280:720 -c:v h264_nvenc -preset p5 -b:v 4M "out/$(basename "$f")"
done
