"""Style: how the page looks, in the light and in the dark."""

STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6675;--paper:#f5f6f8;--card:#fff;--edge:#dfe3e9;--mark:#2563a8;
--wash:#2563a826;--shade:#d9770633}
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ee;--soft:#9aa5b4;--paper:#12161c;--card:#1a2028;--edge:#2d3642;
--mark:#6ab0f3;--wash:#6ab0f333;--shade:#f59e0b33}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.45 system-ui,sans-serif}
header,main{max-width:1180px;margin:0 auto;padding:0 20px}
header{padding-top:28px}
h1{margin:0;font-size:26px;overflow-wrap:anywhere}
h2{margin:0;font-size:16px}
header p,section>p{margin:2px 0 12px;color:var(--soft)}
main{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr));gap:16px;padding-top:8px;
padding-bottom:40px;align-items:start;grid-auto-flow:dense}
section{background:var(--card);border:1px solid var(--edge);border-radius:8px;padding:16px;min-width:0}
.lacks{grid-column:1/-1;margin:0;padding:8px 16px;border-radius:8px;background:var(--shade)}
.wide{grid-column:1/-1}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(210px,1fr));gap:12px;background:none;border:0;padding:0}
.card{background:var(--card);border:1px solid var(--edge);border-radius:8px;padding:12px 16px}
.card b{display:block;font-size:22px;font-variant-numeric:tabular-nums}
.card span{display:block}
.card small,td small{color:var(--soft)}
figure{margin:0}
svg{display:block;width:100%;height:auto}
.line{fill:none;stroke:var(--mark);stroke-width:2;stroke-linejoin:round}
.fill{fill:var(--wash)}
.bar,.dot{fill:var(--mark)}
.shade{fill:var(--shade)}
.tell{fill:transparent}
.tell:hover{fill:var(--wash)}
.grid{stroke:var(--edge)}
.tick,.unit{fill:var(--soft);font:11px system-ui,sans-serif}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:3px 8px 3px 0;border-bottom:1px solid var(--edge);text-align:right;vertical-align:top}
thead th{color:var(--soft);font-weight:500}
tr>:first-child{text-align:left;font-weight:400;overflow-wrap:anywhere}
td{white-space:nowrap}
.wide tr>:last-child{text-align:left;white-space:normal;overflow-wrap:anywhere;padding-left:12px}
.meter{width:40%;padding-right:0}
.meter i{display:block;height:10px;margin-top:6px;min-width:1px;border-radius:2px;background:var(--mark)}
@media print{body{background:none}section,.card{break-inside:avoid}}
"""
