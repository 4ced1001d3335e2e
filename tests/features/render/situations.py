"""Situations: pages that hung, lost or misled browsers of other crawlers and drivers, and what is expected of each."""

from __future__ import annotations

from typing import NamedTuple

FOUND = '<a href="/found">'
ADD = "document.body.insertAdjacentHTML('beforeend', '<a href=/found>x</a>');"


class Situation(NamedTuple):
    """A page, and its result."""

    body: str
    source: str = ""
    """The issue that shows the situation, not this page."""
    headers: tuple[tuple[str, str], ...] = ()
    has: tuple[str, ...] = (FOUND,)
    """What its document has."""
    leads: tuple[str, ...] = ()
    """Paths to which it leads by scripts."""
    requested: tuple[str, ...] | None = None
    """Paths that are requested for it; None: any."""
    result: str = "rendered"
    """`partial`, or the reason why it is not rendered; by | if there are several."""
    lacks: tuple[str, ...] = ()
    """What its document has not."""
    url: str = "http://a.test/"


def _script(code: str) -> str:
    return f"<body><script>{code}</script>"


def _asks(call: str) -> str:
    """Return a page that goes on when a call was refused or answered."""
    return _script(f"(async () => {{ try {{ await {call} }} catch {{}} {ADD} }})();")


DIALOGS = {
    "alert": Situation(_script(f"alert(1); {ADD}")),
    "confirm": Situation(_script(f"if (!confirm('Leave?')) {ADD}")),
    "prompt": Situation(_script(f"if (prompt('Age?') === null) {ADD}")),
    "alerts without end": Situation(
        _script(f"{ADD} for (;;) alert(1);"), "webrecorder/browsertrix-crawler#929", result="partial|hangs", has=()
    ),
    "alerts by a timer": Situation(
        _script(f"{ADD} setInterval(() => alert(1), 10)"),
        "webrecorder/browsertrix-crawler#926",
        result="rendered|partial",
    ),
    "alerts of a frame": Situation(
        "<body><iframe srcdoc='<script>alert(1); parent.postMessage(1)</script>'></iframe>"
        + _script(f"onmessage = () => {{ {ADD} }}")
    ),
    "beforeunload": Situation(
        _script(
            f"{ADD} onbeforeunload = e => {{ e.preventDefault(); return e.returnValue = 'x' }}; location = '/next'"
        ),
        "puppeteer/puppeteer#3673",
        leads=("/next",),
    ),
    "print": Situation(_script(f"print(); {ADD}")),
    "modal dialog": Situation(f"<body><dialog id=one>x</dialog><script>one.showModal(); {ADD}</script>"),
    "http authentication": Situation(_asks("fetch('/auth')"), "internetarchive/brozzler#120", requested=("/auth",)),
    "http authentication of a frame": Situation(
        f"<body><iframe src=/auth></iframe>{_script(ADD)}", "internetarchive/brozzler#137"
    ),
}
PERMISSIONS = {
    name: Situation(_asks(call))
    for name, call in {
        "geolocation": "new Promise((y, n) => navigator.geolocation.getCurrentPosition(y, n))",
        "notifications": "Notification.requestPermission()",
        "camera": "navigator.mediaDevices.getUserMedia({video: true})",
        "screen": "navigator.mediaDevices.getDisplayMedia()",
        "clipboard": "navigator.clipboard.readText()",
        "midi": "navigator.requestMIDIAccess({sysex: true})",
        "persistent storage": "navigator.storage.persist()",
        "storage of others": "document.requestStorageAccess()",
        "usb": "navigator.usb.requestDevice({filters: []})",
        "bluetooth": "navigator.bluetooth.requestDevice({acceptAllDevices: true})",
        "files": "showOpenFilePicker()",
        "fullscreen": "document.documentElement.requestFullscreen()",
        "pointer lock": "document.documentElement.requestPointerLock()",
        "wake lock": "navigator.wakeLock.request('screen')",
        "payment": "new PaymentRequest([{supportedMethods: 'https://a.test/pay'}], {total: {label: 'x', amount: "
        "{currency: 'EUR', value: '1'}}}).show()",
        "push": "navigator.serviceWorker.register('/sw.js')",
        "graphics": "navigator.gpu?.requestAdapter()",
        "battery": "navigator.getBattery?.()",
        "protocol handler": "navigator.registerProtocolHandler('web+x', '/?%s')",
    }.items()
}
STREAMS = {
    "websocket": Situation(
        _script(f"const one = new WebSocket('ws://a.test/socket'); one.onerror = () => {{ {ADD} }}"), requested=()
    ),
    "websocket that comes again": Situation(
        _script(
            f"(function again() {{ new WebSocket('ws://a.test/s').onclose = () => setTimeout(again, 10) }})(); {ADD}"
        ),
        requested=(),
    ),
    "events": Situation(_script(f"new EventSource('/events').onerror = () => {{ {ADD} }}"), requested=()),
    "webrtc": Situation(
        _asks(
            "(async () => { const one = new RTCPeerConnection({iceServers: [{urls: "
            "'stun:127.0.0.1'}]}); one.createDataChannel('x');"
            " await one.setLocalDescription(await one.createOffer()); })()"
        ),
        requested=(),
    ),
    "web transport": Situation(_asks("new WebTransport('https://a.test/').ready"), requested=()),
    "beacon": Situation(
        _script(
            f"navigator.sendBeacon('/b', 'x'); fetch('/k', {{method: 'POST', keepalive: true}})"
            f".catch(() => {{ {ADD} }})"
        ),
        requested=(),
    ),
    "prefetch": Situation(
        "<body><link rel=prefetch href=/a><link rel=prerender href=/b><link rel=modulepreload href=/m>"
        f"<link rel=preconnect href=//b.test><link rel=dns-prefetch href=//c.test>{_script(ADD)}"
    ),
    "speculation rules": Situation(
        '<body><script type=speculationrules>{"prerender": [{"urls": ["/a"], "eagerness": '
        f'"immediate"}}], "prefetch": [{{"urls": ["/b"], "eagerness": "immediate"}}]}}</script>{_script(ADD)}',
        requested=(),
    ),
    "service worker that is waited for": Situation(
        _script(
            "navigator.serviceWorker?.register('/sw.js').catch(() => {"
            f"{ADD} }}); navigator.serviceWorker || ({ADD[:-1]})"
        ),
        requested=(),
    ),
    "media": Situation(
        f"<body><video src=/v.mp4 id=one></video><script>one.onerror = () => {{{ADD} }}</script>", requested=()
    ),
}
MOVES = {
    "reload": Situation(_script(f"{ADD} location.reload()"), leads=("/",)),
    "itself": Situation(_script(f"{ADD} location = location"), "scrapy-plugins/scrapy-playwright#371", leads=("/",)),
    "itself again and again": Situation(
        _script(f"{ADD} setInterval(() => {{ location = location }}, 10)"), leads=("/",), result="rendered|partial"
    ),
    "refresh that a script adds": Situation(
        _script(
            f"{ADD} document.head.insertAdjacentHTML('beforeend', '<meta http-equiv=refresh content=\"0;url=/next\">')"
        ),
        leads=("/next",),
    ),
    "replace after a while": Situation(
        _script(f"{ADD} setTimeout(() => location.replace('/next'), 3000)"), leads=("/next",)
    ),
    "hash again and again": Situation(
        _script(f"{ADD} let n = 0; onhashchange = () => {{ location.hash = ++n }}; location.hash = 'x'"),
        result="rendered|partial",
    ),
    "states without end": Situation(
        _script(f"{ADD} setInterval(() => history.pushState(0, '', '/s' + Math.random()), 1)"),
        result="rendered|partial",
    ),
    "back": Situation(_script(f"{ADD} history.back()")),
    "back again and again": Situation(
        _script(f"{ADD} setInterval(() => history.go(-1), 10)"), result="rendered|partial"
    ),
    "close": Situation(_script(f"{ADD} window.close()")),
    "close after a while": Situation(_script(f"{ADD} setTimeout(() => window.close(), 2000)")),
    "stop": Situation(_script(f"{ADD} window.stop()")),
    "windows": Situation(
        _script(f"{ADD} for (let n = 0; n < 300; n++) open('/w' + n)"), leads=tuple(f"/w{n}" for n in range(100))
    ),
    "top of a frame": Situation(
        "<body><iframe srcdoc=\"<script>top.location = '/next'</script>\"></iframe>" + _script(ADD), leads=("/next",)
    ),
    "navigation api": Situation(_script(f"{ADD} navigation.navigate('/next')"), leads=("/next",)),
    "file": Situation(_script(f"{ADD} location = 'file:///etc/passwd'")),
    "settings of the browser": Situation(_script(f"{ADD} location = 'chrome://version'")),
    "source of the page": Situation(_script(f"{ADD} location = 'view-source:http://a.test/'")),
    "mail": Situation(_script(f"{ADD} location = 'mailto:a@a.test'")),
    "unknown scheme": Situation(_script(f"{ADD} location = 'intent://x#Intent;end'")),
    "data": Situation(_script(f"{ADD} location = 'data:text/html,x'")),
    "download": Situation(
        _script(f"{ADD} const one = document.createElement('a'); one.href = '/f.zip'; one.download = ''; one.click()"),
        "unclecode/crawl4ai#726",
        leads=("/f.zip",),
    ),
    "download of a blob": Situation(
        _script(
            f"{ADD} const one = document.createElement('a'); one.download = 'x';"
            " one.href = URL.createObjectURL(new Blob(['x'.repeat(1e6)])); one.click()"
        )
    ),
    "downloads of frames": Situation(
        f"<body><iframe src=/f.zip></iframe><iframe src=/f.pdf></iframe>{_script(ADD)}",
        "scrapy-plugins/scrapy-playwright#243",
    ),
    "pdf in the page": Situation(
        f"<body><embed type=application/pdf src=/f.pdf><object data=/f.pdf></object>{_script(ADD)}",
        "microsoft/playwright#21841",
    ),
}
BUSY = {
    "worker without end": Situation(
        _script(f"{ADD} new Worker(URL.createObjectURL(new Blob(['for (;;);'])))"),
        result="rendered|partial|hangs",
        has=(),
    ),
    "worker that sleeps": Situation(
        _script(
            f"{ADD} new Worker(URL.createObjectURL(new Blob([`Atomics.wait(new Int32Array("
            "new SharedArrayBuffer(4)), 0, 0)`])))"
        ),
        headers=(("Cross-Origin-Opener-Policy", "same-origin"), ("Cross-Origin-Embedder-Policy", "require-corp")),
    ),
    "frames without end": Situation(_script(f"{ADD} (function again() {{ requestAnimationFrame(again) }})()")),
    "idle without end": Situation(_script(f"{ADD} (function again() {{ requestIdleCallback(again) }})()")),
    "resize without end": Situation(
        f"<body><div id=one>x</div><script>{ADD} let n = 0; new ResizeObserver(() => {{"
        " one.style.width = (n++ % 500) + 'px' }).observe(one)</script>"
    ),
    "nodes by the second": Situation(
        _script(
            f"{ADD} setInterval(() => {{ for (let n = 0; n < 1e4; n++)"
            " document.body.append(document.createElement('i')) }, 100)"
        ),
        result="rendered|partial|too_large|hangs|memory",
        has=(),
    ),
    "wide canvas": Situation(
        f"<body><canvas id=one width=30000 height=30000></canvas><script>"
        f"one.getContext('2d')?.fillRect(0, 0, 9, 9); {ADD}</script>",
        result="rendered|partial|memory|crashed",
        has=(),
    ),
    "assembly memory": Situation(
        _script(
            f"{ADD} const one = new WebAssembly.Memory({{initial: 1, maximum: 65536}});"
            " try { for (;;) { one.grow(1000); new Uint8Array(one.buffer).fill(1) } } catch {}"
        ),
        result="rendered|partial|memory|crashed|hangs",
        has=(),
    ),
    "script that loads scripts synchronously": Situation(
        _script(
            "for (let n = 0; n < 5; n++) { const x = new XMLHttpRequest();"
            f" x.open('GET', '/d' + n, false); x.send() }} {ADD}"
        ),
        requested=tuple(f"/d{n}" for n in range(5)),
    ),
    "slow synchronous request": Situation(
        _script(f"const x = new XMLHttpRequest(); x.open('GET', '/slow', false); x.send(); {ADD}")
    ),
    "long console": Situation(_script(f"for (let n = 0; n < 3e4; n++) console.log('x'.repeat(100)); {ADD}")),
    "exceptions": Situation(_script(f"{ADD} setInterval(() => {{ throw Error('x') }}, 1)")),
    "debugger": Situation(_script(f"setInterval(() => {{ debugger }}, 50); debugger; {ADD}")),
    "deep": Situation(
        _script(
            f"let one = document.body; for (let n = 0; n < 2e3; n++)"
            f" one = one.appendChild(document.createElement('div')); {ADD}"
        )
    ),
    "many roots of one large style sheet": Situation(
        _script(
            f"{ADD} const s = new CSSStyleSheet(); s.replaceSync('.a {{ color: red }} '.repeat(3e3));"
            " for (let n = 0; n < 2e3; n++) document.body.appendChild(document.createElement('p'))"
            ".attachShadow({mode: 'open'}).adoptedStyleSheets = [s]"
        )
    ),
    "many frames": Situation(
        _script(f"for (let n = 0; n < 150; n++) document.body.append(document.createElement('iframe')); {ADD}")
    ),
    "frame of itself": Situation(f"<body><iframe src=/></iframe>{_script(ADD)}"),
    "frames of frames": Situation(f"<body><iframe src=/nest.html?0></iframe>{_script(ADD)}", result="rendered|partial"),
}
POLICIES = {
    "content policy": Situation(_script(ADD), headers=(("Content-Security-Policy", "script-src 'unsafe-inline'"),)),
    "type of any file": Situation(_script(ADD), headers=(("Content-Type", "application/octet-stream"),)),
    "no type": Situation(_script(ADD), headers=(("X-Content-Type-Options", "nosniff"),)),
    "content policy of nothing": Situation(
        "<body><a href=/found>x</a>", headers=(("Content-Security-Policy", "default-src 'none'"),)
    ),
    "sandboxed": Situation(
        "<body><a href=/found>x</a>" + _script("document.body.remove()"),
        headers=(("Content-Security-Policy", "sandbox"),),
    ),
    "trusted types": Situation(
        "<body><a href=/found>x</a><details><p>x</details>",
        headers=(("Content-Security-Policy", "require-trusted-types-for 'script'"),),
    ),
    "report": Situation(
        _script(f"new Image().src = '/i.png'; {ADD}"),
        headers=(("Content-Security-Policy", "img-src 'none'; report-uri /report"),),
        requested=(),
    ),
    "opener policy": Situation(_script(ADD), headers=(("Cross-Origin-Opener-Policy", "same-origin"),)),
    "embedder policy": Situation(
        "<script src=//b.test/app.js></script><body><a href=/found>x</a>",
        headers=(("Cross-Origin-Embedder-Policy", "require-corp"),),
    ),
    "integrity": Situation(
        "<script src=/app.js integrity=sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=></script>"
        "<body><a href=/found>x</a>",
        lacks=("/from-app",),
    ),
    "wrong type of a script": Situation(
        "<script src=/typed.js></script><body><a href=/found>x</a>", lacks=("/from-app",)
    ),
    "mixed content": Situation(
        "<script src=http://a.test/app.js></script><body><a href=/found>x</a>",
        url="https://a.test/",
        lacks=("/from-app",),
        requested=(),
    ),
    "no referrer": Situation(
        f"<meta name=referrer content=no-referrer>{_asks('fetch(`/needs-referer`)')}", lacks=("/hot",)
    ),
}
MORE = {
    "frame that hangs as a condition": Situation(
        f'<body><iframe src=/slow onload="{ADD}"></iframe>',
        "puppeteer/puppeteer#10838",
        result="rendered|partial",
        has=("<iframe",),
    ),
    "lazy frame far below": Situation(
        f"<body><div style='height: 9000px'></div><iframe loading=lazy src=/m.html></iframe>{_script(ADD)}",
        "puppeteer/puppeteer#8399",
    ),
    "animation without end": Situation(
        f"<style>@keyframes k {{ to {{ transform: rotate(1turn) }} }} * {{ animation: k .1s infinite }}</style>"
        f"{_script(ADD)}",
        "puppeteer/puppeteer#5306",
    ),
    "clock of frames": Situation(
        _script(
            f"const t = performance.now(); (function again() {{ if (performance.now() - t > 2000) {{ {ADD} }}"
            " else requestAnimationFrame(again) })()"
        )
    ),
    "unload that blocks": Situation(
        _script(f"{ADD} for (const name of ['unload', 'pagehide']) addEventListener(name, () => {{ for (;;); }})"),
        "webrecorder/browsertrix-crawler#780",
    ),
    "written without an end": Situation(
        _script("onload = () => { document.open(); document.write('<body><a href=/found>x</a><p>more') }"),
        result="rendered|partial",
    ),
    "websocket that is waited for": Situation(
        _script(
            f"const late = setTimeout(() => {{ {ADD} }}, 2000);"
            " new WebSocket('wss://a.test/s').onopen = () => clearTimeout(late)"
        ),
        "puppeteer/puppeteer#12391",
        requested=(),
    ),
    "scroll that is undone": Situation(
        _script(f"{ADD} document.body.style.height = '9000px'; onscroll = () => scrollTo(0, 0)"),
        result="rendered|partial",
    ),
}
STORES = {
    "local storage": Situation(
        _script(
            f"localStorage.n = 1 + Number(localStorage.n || 0); sessionStorage.x = 1; if (localStorage.n == 1) {ADD}"
        )
    ),
    "local storage of the next page": Situation(
        _script(f"localStorage.n = 1 + Number(localStorage.n || 0); if (localStorage.n == 1) {ADD}")
    ),
    "full local storage": Situation(
        _script(f"try {{ for (let n = 0;; n++) localStorage[n] = 'x'.repeat(1e6) }} catch {{}} {ADD}")
    ),
    "database": Situation(_script(f"indexedDB.open('x').onsuccess = () => {{ {ADD} }}")),
    "cache": Situation(_asks("(async () => { const c = await caches.open('x'); await c.add('/app.js') })()")),
    "cookie": Situation(_script(f"document.cookie = 'a=1'; if (document.cookie == 'a=1') {ADD}")),
    "cookie of the next page": Situation(_script(f"if (!document.cookie) {ADD}")),
    "lock": Situation(_script(f"navigator.locks?.request('x', () => new Promise(() => 0)); {ADD}")),
}
LOADS = {
    "module": Situation("<body><script type=module src=/m.js></script>", has=('<a href="/from-m">',)),
    "import map": Situation(
        '<body><script type=importmap>{"imports": {"m": "/m.js"}}</script><script type=module>import \'m\'</script>',
        has=('<a href="/from-m">',),
    ),
    "module that waits for good": Situation(
        f"<body><script type=module>await new Promise(() => 0)</script>{_script(ADD)}"
    ),
    "module of another origin": Situation(
        "<body><script type=module src=//b.test/echo.js></script>", has=('<a href="/from-echo">',)
    ),
    "data of another origin": Situation(
        _script(f"fetch('//b.test/echo').then(() => {{ {ADD} }})"), "puppeteer/puppeteer#214"
    ),
    "data of another origin that permits none": Situation(
        _script(f"fetch('//b.test/closed').catch(() => {{ {ADD} }})")
    ),
    "data as JSON": Situation(
        _script(
            "fetch('/negotiated', {headers: {Accept: 'application/json'}}).then(one =>"
            f" one.json()).then(() => {{ {ADD} }})"
        )
    ),
    "data for scripts alone": Situation(
        _script(
            "fetch('/xhr-only', {headers: {'X-Requested-With': 'XMLHttpRequest'}})"
            f".then(one => {{ if (one.ok) {ADD} }})"
        )
    ),
    "hotlink": Situation(
        _script(f"fetch('/needs-referer').then(one => {{ if (one.ok) {ADD} }})"),
        "davidfstr/Crystal-Web-Archiver#83, puppeteer/puppeteer#1467",
    ),
    "preflight": Situation(
        _script(f"fetch('//b.test/echo', {{headers: {{'X-Api-Version': '1'}}}}).catch(() => {{ {ADD} }})"), requested=()
    ),
    "redirected script": Situation("<body><script src=/moved.js></script>", has=('<a href="/from-app">',)),
    "redirects without end": Situation(_script(f"fetch('/around').catch(() => {{ {ADD} }})")),
    "missing script": Situation(f"<body><script src=/none.js></script>{_script(ADD)}"),
    "broken script": Situation(f"<body><script>this is none</script>{_script(ADD)}"),
    "worker that imports": Situation(
        _script(f"const one = new Worker('/worker.js'); one.onmessage = () => {{{ADD} }}")
    ),
    "shared worker": Situation(_script(f"try {{ new SharedWorker('/worker.js') }} catch {{}} {ADD}")),
    "image as a condition": Situation(
        _script(f"const one = new Image(); one.onload = () => {{ {ADD} }}; one.src = '/i.png'"), requested=()
    ),
    "style sheet as a condition": Situation(
        _script(
            "const one = document.createElement('link'); one.rel = 'stylesheet';"
            f" one.href = '/s.css'; one.onload = () => {{ {ADD} }}; document.head.append(one)"
        ),
        requested=(),
    ),
    "fonts as a condition": Situation(
        f"<style>@font-face {{ font-family: x; src: url(/x.woff2) }} body {{ font-family: x }}"
        f"</style>{_asks('document.fonts.load(`12px x`)')}",
        requested=(),
    ),
    "script at the end of a template": Situation(
        "<body><template id=one><a href=/found>x</a></template><script>"
        "document.body.append(one.content.cloneNode(true))</script>"
    ),
    "written anew": Situation(
        _script("onload = () => { document.open(); document.write('<body><a href=/found>x</a>'); document.close() }")
    ),
    "frames of a set": Situation("<frameset><frame src=/m.html><frame src=/n.html></frameset>", has=("<frame src=",)),
    "styles without markup": Situation(
        "<style data-emotion></style><body><script>document.styleSheets[0].insertRule('.a { color: red; }')</script>",
        "prerender/prerender#574, stereobooster/react-snap#76",
        has=("<!DOCTYPE html>", '<style data-emotion="">.a { color: red; }</style>'),
    ),
    "styles that are adopted": Situation(
        "<body><p id=one>x</p><script>const s = new CSSStyleSheet(); s.replaceSync('.b { color: red; }');"
        "document.adoptedStyleSheets = [s]; one.attachShadow({mode: 'open'}).adoptedStyleSheets = [s]</script>",
        "rrweb-io/rrweb#1567",
        has=("<style>.b { color: red; }</style></template>", "</body><style>.b { color: red; }</style></html>"),
    ),
    "what is for browsers without scripts": Situation(
        f"<body><noscript>Enable JavaScript</noscript>{_script(ADD)}", lacks=("Enable JavaScript",)
    ),
    "own prototypes": Situation(
        _script(
            f"Array.prototype.map = Element.prototype.querySelectorAll = JSON.stringify ="
            f" Map.prototype.set = () => {{ throw 1 }}; {ADD}"
        )
    ),
    "frozen time": Situation(
        _script(f"Date.now = () => 0; window.setTimeout = () => 0; requestAnimationFrame = () => 0; {ADD}")
    ),
    "time zone and language": Situation(
        _script(
            "document.body.append([new Date().getTimezoneOffset(),"
            "Intl.DateTimeFormat().resolvedOptions().timeZone, navigator.language].join());" + ADD
        ),
        has=(FOUND, "0,UTC,en-"),
    ),
    "motion and data": Situation(
        _script(
            "document.body.append([matchMedia('(prefers-reduced-motion: reduce)').matches,"
            f"navigator.connection?.saveData, innerWidth, innerHeight].join()); {ADD}"
        ),
        has=(FOUND, "false,false,1280,"),
    ),
}
SITUATIONS = DIALOGS | PERMISSIONS | STREAMS | MOVES | BUSY | POLICIES | MORE | STORES | LOADS
