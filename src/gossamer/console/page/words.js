// Words: numbers, sizes and times as people read them; what strangers wrote, made harmless.

export const LIMITS = {
  fetching: "fetching", politeness: "delay", crawl_delay: "delay (Crawl-delay)", asked_to_wait: "delay (Retry-After)",
  failing: "failing", robots: "waiting for robots.txt", lookup: "waiting for DNS", address: "waiting for its address",
  site: "waiting for its site", ready: "ready", closed: "closed",
};

const OUTCOMES = {
  fetched: "fetched", not_modified: "not modified", redirected: "redirected", http_error: "HTTP error",
  robots_denied: "denied by robots.txt", excluded: "excluded", dns_error: "DNS error", connect_error: "no connection",
  tls_error: "TLS error", timeout: "timeout", protocol_error: "protocol error", too_large: "too large",
  unsupported: "unsupported", trapped: "in a trap", host_closed: "host closed", robots_unreachable: "robots.txt unreachable",
  payment_required: "payment required", legally_blocked: "blocked for legal reasons", challenged: "bot protection",
  process_crashed: "crashed the parser", internal_error: "internal error",
  usage_denied: "use denied by the site", usage_withheld: "use refused by the page",
};

export const OVER = new Set(["finished", "stopped", "failed"]);

const SCHEMES = new Set(["http:", "https:", "ftp:", "gopher:"]);
const SPACES = /[\t\n\v\f\r\u0085\u2028\u2029]/gu;
// Controls, and marks that turn the direction of what follows or do not show at all.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

export function harmless(value) {
  return String(value ?? "").replace(SPACES, " ").replace(UNSEEN, (mark) => "\\u" + mark.codePointAt(0).toString(16).padStart(4, "0"));
}

// The address to which a link may lead, or null: anything that is not one of the web's own schemes stays text.
export function target(text) {
  try {
    const url = new URL(text);
    return SCHEMES.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

export function count(value) {
  return Math.round(value ?? 0).toLocaleString("en-GB");
}

export const counted = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;

export function decimal(value) {
  const size = Math.abs(value ?? 0);
  return (value ?? 0).toLocaleString("en-GB", { maximumFractionDigits: size < 10 ? 2 : size < 100 ? 1 : 0 });
}

function scaled(value, units) {
  let place = 0;
  while (value >= 1000 && place < units.length - 1) {
    value /= 1000;
    place += 1;
  }
  return `${place === 0 ? Math.round(value) : decimal(value)} ${units[place]}`;
}

export const size = (bytes) => scaled(bytes ?? 0, ["B", "kB", "MB", "GB", "TB", "PB"]);
export const bits = (rate) => scaled(rate ?? 0, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
export const short = (value) => (value < 1000 ? decimal(value) : scaled(value, ["", "k", "M", "G", "T"]));
export const share = (part) => `${(100 * part).toFixed(1)}%`;
export const outcome = (name) => OUTCOMES[name] ?? harmless(name);
export const limit = (name) => LIMITS[name] ?? harmless(name);

// A number as typed, perhaps with a decimal comma; else the text, which the server judges: 10,000 is not 10.
export function typed(text) {
  const plain = text.trim().replace(/^(\d*),(\d\d?)$/, "$1.$2");
  return /^-?\d+$|^-?\d*\.\d\d?$/.test(plain) ? Number(plain) : text.trim();
}

export function seconds(value) {
  return value >= 1 ? `${decimal(value)} s` : `${decimal(1000 * value)} ms`;
}

export function duration(value) {
  const whole = Math.round(value ?? 0);
  const days = Math.floor(whole / 86400), hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60);
  if (days) return `${days} d ${hours % 24} h`;
  if (hours) return `${hours} h ${minutes % 60} min`;
  return minutes ? `${minutes} min ${whole % 60} s` : `${whole} s`;
}

export function clock(at) {
  return new Date(1000 * at).toLocaleTimeString("en-GB");
}

// An instant in ISO 8601 and UTC, to the second.
export const instant = (at) => harmless(at).replace("T", " ").replace(/(\.\d+)?(Z|\+00:00)$/, "");

// The beginning of a text that may be a page long.
export function brief(text) {
  const marks = [...text.slice(0, 500)];
  return marks.length > 120 ? `${marks.slice(0, 119).join("")}…` : text;
}

export function until(at, now) {
  return at > now ? `${duration(Math.ceil(at - now))} more` : "";
}
