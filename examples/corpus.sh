#!/bin/sh
# Make a corpus: the main text of each page, without pages whose owners refuse training.
set -e
gossamer corpus https://docs.example.org/ --contact you@example.org --max-pages 1000 -o corpus
gossamer export corpus --to jsonl --permitted ai-train --unknown -o permitted.jsonl
wc -l permitted.jsonl
