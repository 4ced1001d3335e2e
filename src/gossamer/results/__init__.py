"""Results: what is made of a crawl: none of it is read by the crawl, and each can be made again."""
