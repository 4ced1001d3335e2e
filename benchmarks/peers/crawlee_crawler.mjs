// A crawlee crawler in Node that follows links and keeps a row for each page: for the league table (benchmarks/league).
//
//     node benchmarks/peers/crawlee_crawler.mjs JSON
//
// The argument is what `_script` in league/peers.py writes. Packages are below .parts/league/node.
import { createRequire } from "node:module";

const require = createRequire(new URL("../../.parts/league/node/package.json", import.meta.url));
const { CheerioCrawler, Configuration, log } = require("@crawlee/cheerio");

const task = JSON.parse(process.argv[2]);
process.env.CRAWLEE_STORAGE_DIR = task.output;
log.setLevel(log.LEVELS.OFF);
const domains = task.domains.map((one) => one.replaceAll(".", "\\.")).join("|");
const within = new RegExp(`^https?://([^/]*\\.)?(${domains})(:\\d+)?/`);
const atOnce = task.concurrency;
const crawler = new CheerioCrawler(
  {
    respectRobotsTxtFile: true,
    minConcurrency: atOnce,
    maxConcurrency: atOnce,
    sameDomainDelaySecs: task.delay_s,
    async requestHandler({ request, $, enqueueLinks, pushData }) {
      await pushData({ url: request.loadedUrl, title: $("title").text() });
      await enqueueLinks({ strategy: "all", regexps: [within] });
    },
  },
  new Configuration({ purgeOnStart: !task.resumed }),
);
await crawler.run(task.seeds);
