#!/bin/sh
# Archive a site: WARC files and an index, checked and packaged as WACZ for ReplayWeb.page.
set -e
gossamer archive https://docs.example.org/ --contact you@example.org --max-pages 1000 -o docs
gossamer verify docs --deep
ls -lh docs.wacz
