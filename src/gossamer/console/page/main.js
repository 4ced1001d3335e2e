// Main: puts the parts together. What comes from the server is shown; what people do is sent.

import * as archive from "./archive.js";
import { Charts } from "./charts.js";
import { Course } from "./course.js";
import { by, say } from "./dom.js";
import * as host from "./host.js";
import * as items from "./items.js";
import * as over from "./over.js";
import * as picture from "./picture.js";
import * as questions from "./questions.js";
import * as recent from "./recent.js";
import * as steer from "./steer.js";
import { harmless } from "./words.js";
import { listen, lost } from "./wire.js";

const course = new Course();
const charts = new Charts(course);
archive.begin();
questions.begin();
steer.begin();
host.begin();
items.begin();
recent.whenAsked(questions.why);
over.whenAsked(questions.why);
over.whenDrawn(() => course.columns(0).columns[0].length > 1);

const named = location.pathname.match(/\/crawls\/([^/]+)\/$/);
if (named) say(by("name"), harmless(named[1]));  // Of a crawl that cannot be read nothing else is known.

const HEARD = {
  about(answer) {
    const name = harmless(answer.name);
    say(by("name"), name);
    document.title = `${name} · Gossamer`;
    say(by("version"), harmless(answer.version));
    by("search-section").hidden = !answer.search;
    document.body.classList.toggle("items", answer.items);
    steer.keys();
  },
  course(answer) {
    course.begin(answer.points);
    charts.update();
  },
  recent: recent.begin,
  status({ at, status, health, resumable, recent: added, console: own }) {
    const pending = (status.queued ?? 0) + (status.in_flight ?? 0);
    if (over.stands(status)) {
      charts.all();
      over.read().then(() => picture.show(status, at, own));
    }
    if (!over.isOver()) {
      course.add([at, status.pages ?? 0, status.attempts ?? 0, status.wire_bytes ?? 0, pending]);
    }
    charts.update();
    picture.show(status, at, own);
    picture.judge(health, status);
    host.stands(status, at);
    steer.stands(status, resumable);
    recent.add(added);
    over.trim();
    stand("live");
  },
  still() {
    stand("live");
  },
  silent(answer) {
    stand("lost", answer.says);
  },
};

function stand(state, why = "", failures = 0) {
  const place = by("link");
  place.className = `link ${state}`;
  picture.answers(state === "live");
  say(place, state === "live" ? (over.isOver() ? "not running" : "live") : lost(why, failures));
}

listen((name, value) => HEARD[name]?.(value), stand);
