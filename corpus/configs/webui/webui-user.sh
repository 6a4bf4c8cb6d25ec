#!/bin/bash
export COMMANDLINE_ARGS="--medvram --no-half --xformers"
