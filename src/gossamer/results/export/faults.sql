-- Tables, then a question for each kind of fault, below a line with its name.
-- A question gives the URL, a detail, and the pages that lead to it or share it.

-- tables
CREATE VIEW IF NOT EXISTS links AS SELECT '' AS from_url, '' AS to_url, '' AS to_key, '' AS link_type WHERE false;
CREATE VIEW IF NOT EXISTS fragments AS SELECT '' AS url, '' AS to_url, '' AS fragment, '' AS name WHERE false;
CREATE VIEW IF NOT EXISTS sitemap_versions AS SELECT '' AS url, [''] AS entries, [''] AS alternates WHERE false;
-- Pages listed that lead to one URL.
SET VARIABLE most = 100;
-- Languages of ISO 639-1, regions of ISO 3166-1.
SET VARIABLE languages = regexp_split_to_array(trim('
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el
    en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu
    ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na
    nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so
    sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
'), '\s+');
SET VARIABLE regions = regexp_split_to_array(trim('
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ
    CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO
    FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE
    JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO
    MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW
    PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM
    TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
'), '\s+');
-- Titles and headings of pages that say that there is no page.
SET VARIABLE absent = '(?i)^\W*(error\W*)?404\b|\b404\W*$|^\W*not found\b|\bnot found\W*$|\b(page|file) (was |is |could |can)?\s?not (be )?(found|available)|(page|file) (does not|doesn.t|no longer) exists?|(page|file) (can|couldn).t be found|nicht gefunden|existiert nicht|introuvable|no encontrad[ao]|non trovat[ao]|niet gevonden|não encontrad[ao]|nie znaleziono|не найден|見つかりません|找不到';
-- A URL's last attempt counts. What a crawl without the modules `metadata` and `audit` lacks is null.
CREATE TEMP TABLE latest AS
SELECT key, url, outcome::VARCHAR AS outcome, status, error, title, description, media_type::VARCHAR AS media_type,
    duplicate_of, near_duplicate_of, link_type::VARCHAR AS link_type, referrer, host::VARCHAR AS host, depth, fetch_s,
    wire_bytes, body_bytes, declared_language, h1, title_count, description_count, coalesce(robots_meta, '') AS robots,
    robots AS directives, alternates, outside_head, images_without_alt, json_ld_error, json_ld_lacks, insecure,
    invalid_links, words, ids,
    coalesce(script_signal, '') NOT IN ('', 'scripts') AS is_scripted, nullif(regexp_extract(redirect_to, '#(.+)', 1), '') AS moved_to
FROM (
    SELECT * FROM pages UNION ALL BY NAME
    SELECT NULL::VARCHAR AS description, NULL::VARCHAR AS declared_language, NULL::VARCHAR AS script_signal,
        NULL::VARCHAR AS robots_meta, NULL::VARCHAR AS json_ld_error, NULL::VARCHAR[] AS json_ld_lacks, NULL::VARCHAR[] AS h1,
        NULL::BIGINT AS title_count, NULL::BIGINT AS description_count, NULL::BIGINT AS words,
        NULL::VARCHAR[] AS alternates, NULL::VARCHAR[] AS outside_head, NULL::VARCHAR[] AS images_without_alt,
        NULL::VARCHAR[] AS insecure, NULL::VARCHAR[] AS invalid_links, NULL::VARCHAR[] AS ids
    WHERE false
)
QUALIFY row_number() OVER (PARTITION BY key ORDER BY fetched_at DESC, attempt DESC) = 1;
CREATE TEMP VIEW own AS SELECT DISTINCT host FROM latest WHERE link_type NOT IN ('outlink', 'embed');
CREATE TEMP VIEW html AS
SELECT * FROM latest
WHERE outcome = 'fetched' AND media_type IN ('text/html', 'application/xhtml+xml') AND host IN (FROM own)
    AND coalesce(status NOT IN (204, 205), true)  -- Without content, browsers keep showing the page before.
    AND (coalesce(link_type, '') <> 'sitemap_file' OR title_count IS NOT NULL);  -- Not a sitemap that is served as one.
-- A staging host keeps search engines from all its pages: there the check is of what the pages will be. Where a sitemap
-- lists them, they contradict it all the same.
UPDATE latest SET robots = ''
WHERE (SELECT count(*) > 1 AND bool_and(regexp_matches(robots, '\b(noindex|none)\b')) FROM html);
CREATE TEMP VIEW documents AS SELECT * FROM html WHERE duplicate_of = '';
-- Canonical addresses of pages: search engines ignore those in a body.
CREATE TEMP TABLE canonicals AS
SELECT DISTINCT page.key, links.to_key, links.to_url FROM links JOIN html AS page ON page.url = links.from_url
WHERE links.link_type::VARCHAR = 'canonical'
    AND NOT list_contains(coalesce(page.outside_head, []), 'canonical ' || links.to_url);
-- The one canonical address of each page that has no other.
CREATE TEMP TABLE canonical AS
SELECT key, max(to_key) AS to_key, max(to_url) AS to_url FROM canonicals GROUP BY key HAVING count(DISTINCT to_key) = 1;
-- Pages that search engines may list: faults of what they show are faults of these alone. Where a page names another
-- as canonical, that one is listed.
CREATE TEMP VIEW listed AS
SELECT * FROM documents
WHERE NOT regexp_matches(robots, '\b(noindex|none)\b') AND coalesce(link_type NOT IN ('embed', 'frame', 'iframe'), true)
    AND key NOT IN (SELECT key FROM canonical WHERE to_key <> key AND to_key IN (SELECT key FROM html));
-- A reader finds the link to a redirect on a page, so that page links to what the redirect leads to.
CREATE TEMP TABLE behind AS
WITH RECURSIVE moved AS (
    SELECT DISTINCT page.key, links.to_key, page.moved_to AS fragment FROM links JOIN latest AS page ON page.url = links.from_url
    WHERE links.link_type::VARCHAR = 'redirect' AND page.outcome = 'redirected'
), behind AS (
    FROM moved
    UNION SELECT behind.key, moved.to_key, coalesce(moved.fragment, behind.fragment)
    FROM behind JOIN moved ON moved.key = behind.to_key
) FROM behind;
CREATE TEMP TABLE edges AS
WITH named AS (
    SELECT DISTINCT to_key AS key, from_url FROM links
    WHERE link_type::VARCHAR NOT IN ('redirect', 'canonical', 'self')
)
FROM named UNION SELECT behind.to_key, from_url FROM named JOIN behind USING (key);
-- Pages without a fault need no list: all lists together would be most of the memory.
CREATE TEMP TABLE linking AS
SELECT key, list(from_url ORDER BY from_url)[1:getvariable('most')] AS pages FROM edges
WHERE key IN (
    SELECT key FROM latest WHERE outcome <> 'fetched' OR regexp_matches(title, getvariable('absent'))
        OR regexp_matches(h1[1], getvariable('absent')))
GROUP BY key;
-- The way from each redirect, to its end or to where it comes round. A crawl follows few in a row (scope.hops_max).
CREATE TEMP TABLE ways AS
WITH RECURSIVE hops AS MATERIALIZED (
    SELECT page.key, page.url, max_by(links.to_key, links.to_url) AS to_key, max(links.to_url) AS to_url
    FROM links JOIN latest AS page ON page.url = links.from_url
    WHERE links.link_type::VARCHAR = 'redirect' AND page.outcome = 'redirected' GROUP BY page.key, page.url
), followed AS (
    SELECT key, url, to_key AS stop, [key] AS keys, [url, to_url] AS urls FROM hops
    UNION ALL SELECT followed.key, followed.url, hops.to_key, list_append(keys, hops.key), list_append(urls, hops.to_url)
    FROM followed JOIN hops ON hops.key = stop WHERE NOT list_contains(keys, stop)
)
SELECT followed.key, followed.url, urls, array_to_string(urls, ' → ') AS detail, pages,
    -- A loop has the name of its least key; a way that ends has none.
    CASE WHEN list_contains(keys, stop) THEN list_min(keys[list_position(keys, stop):]) END AS loop,
    followed.key IN (SELECT to_key FROM hops WHERE to_key <> hops.key) AS is_target
FROM followed LEFT JOIN linking USING (key)
WHERE list_contains(keys, stop) OR stop NOT IN (SELECT key FROM hops);
-- Each loop once, by the first way into it.
CREATE TEMP TABLE loops AS
SELECT * FROM ways WHERE loop IS NOT NULL QUALIFY row_number() OVER (PARTITION BY loop ORDER BY is_target, url) = 1;
-- What readers click: an author can change its address.
CREATE TEMP VIEW clicked AS
SELECT to_key AS key FROM links SEMI JOIN documents ON documents.url = links.from_url
WHERE links.link_type::VARCHAR IN ('anchor', 'area');
CREATE TEMP VIEW mapped AS
SELECT DISTINCT to_key AS key FROM links WHERE link_type::VARCHAR = 'sitemap';
-- The server answered, without its robots.txt: the page may be there.
CREATE TEMP MACRO answered(line) AS regexp_matches(line, getvariable('answered'));
-- Another site wants a login, or no crawlers: a reader may see the page.
CREATE TEMP MACRO shut(code, way, place) AS
    coalesce(code IN (401, 403, 999), false) AND (way = 'outlink' OR place NOT IN (FROM own));
-- Without a network no other site answers: of three or more with public names, none. A refusal is an answer.
CREATE TEMP MACRO is_silent(outcome, line) AS
    outcome IN ('dns_error', 'connect_error', 'timeout', 'robots_unreachable') AND NOT answered(line)
    AND NOT contains(line, 'refused');
CREATE TEMP VIEW outside AS
SELECT host, bool_and(is_silent(outcome, error)) AS is_silent FROM latest
WHERE host NOT IN (FROM own) AND outcome NOT IN ('excluded', 'host_closed', 'trapped', 'unsupported')
    AND NOT regexp_matches(host, '^\[|^(127|10|192\.168)\.|^[^.]+(:\d+)?$|\.(invalid|test|example|localhost|local)(:\d+)?$')
GROUP BY host;
CREATE TEMP TABLE unreached AS
SELECT host FROM outside WHERE (SELECT bool_and(is_silent) AND count(*) >= 3 FROM outside);
CREATE TEMP VIEW attempts AS
SELECT url, CASE WHEN status IS NULL OR outcome IN ('payment_required', 'legally_blocked', 'login_required')
        THEN outcome || ': ' || error ELSE 'HTTP ' || status END
    || CASE WHEN link_type = 'redirect' THEN ', redirected from ' || referrer ELSE '' END AS detail,
    coalesce(linking.pages, [one FOR one IN [referrer] IF one <> '']) AS pages,
    -- What canonical addresses alone name has a fault of its own.
    (link_type <> 'canonical' OR linking.pages IS NOT NULL) AND (
        outcome = 'http_error' AND status IS DISTINCT FROM 429 AND NOT shut(status, link_type, host)
        OR outcome IN ('dns_error', 'connect_error', 'tls_error', 'timeout', 'protocol_error')
        OR outcome = 'robots_unreachable' AND NOT answered(error)) AND host NOT IN (FROM unreached) AS is_broken,
    host IN (FROM unreached) AS is_unreached,
    outcome = 'http_error' AND (status = 429 OR shut(status, link_type, host))
        OR outcome IN ('robots_denied', 'challenged', 'host_closed', 'payment_required', 'legally_blocked',
            'login_required')
        OR outcome = 'robots_unreachable' AND answered(error) AS is_unchecked,
    link_type = 'seed' AS is_seed
FROM latest LEFT JOIN linking USING (key);
-- Links and redirects to a place that is not in the page where they end, which is behind their redirects. The fragment
-- of a redirect takes the place of the link's (RFC 9110, section 10.2.2).
CREATE TEMP TABLE lost AS
WITH named AS (
    SELECT url, to_url, fragment, name FROM fragments WHERE url IN (SELECT url FROM documents)
    UNION SELECT page.url, links.to_url, page.moved_to, coalesce(try(url_decode(page.moved_to)), page.moved_to)
    FROM latest AS page JOIN links ON links.from_url = page.url AND links.link_type::VARCHAR = 'redirect'
    WHERE page.outcome = 'redirected' AND page.host IN (FROM own) AND NOT contains(page.moved_to, ':~:')
        AND NOT regexp_full_match(page.moved_to, getvariable('no_place'), 'is')
), addresses AS (
    SELECT to_url, to_key AS key FROM links WHERE to_url IN (SELECT to_url FROM named)
    UNION SELECT url, key FROM latest WHERE url IN (SELECT to_url FROM named)
), wanted AS (
    SELECT DISTINCT key, fragment, name FROM named JOIN addresses USING (to_url)
), placed AS (
    SELECT wanted.*, coalesce(behind.to_key, wanted.key) AS stop FROM wanted LEFT JOIN (
        behind JOIN latest ON latest.key = to_key AND outcome = 'fetched') ON behind.key = wanted.key
    WHERE behind.fragment IS NULL
), missing AS (
    SELECT placed.key, fragment FROM placed JOIN html AS page ON page.key = stop
    LEFT JOIN latest AS original ON original.url = page.duplicate_of
    WHERE NOT page.is_scripted AND coalesce(page.ids, original.ids) IS NOT NULL
        AND NOT list_has_any(coalesce(page.ids, original.ids), [fragment, name, 'user-content-' || name])
)
SELECT min(to_url) || '#' || fragment AS url,
    list(DISTINCT named.url ORDER BY named.url)[1:getvariable('most')] AS pages
FROM missing JOIN addresses USING (key) JOIN named USING (to_url, fragment) GROUP BY missing.key, fragment;
-- Pages that search engines cannot list, and why: no page names them as canonical or as a version of it.
CREATE TEMP VIEW unlisted AS
SELECT key, CASE WHEN outcome = 'robots_denied' THEN 'robots.txt disallows it' WHEN outcome = 'fetched' THEN 'noindex'
    WHEN status IS NULL THEN outcome ELSE 'HTTP ' || status END AS why
FROM latest
WHERE outcome IN ('http_error', 'redirected', 'dns_error', 'connect_error', 'tls_error', 'timeout')
        AND status IS DISTINCT FROM 429 AND NOT shut(status, link_type, host)
    OR outcome = 'robots_denied' OR outcome = 'fetched' AND regexp_matches(robots, '\b(noindex|none)\b');
-- Pages and files that may have versions in other languages.
CREATE TEMP VIEW versioned AS
SELECT key, url, alternates FROM listed
UNION ALL SELECT key, url, alternates FROM latest
WHERE outcome = 'fetched' AND media_type = 'application/pdf' AND host IN (FROM own) AND duplicate_of = ''
    AND NOT regexp_matches(robots, '\b(noindex|none)\b');
-- Languages of a page's versions: what the page says, or else what a sitemap says of it, and which sitemap (`place`).
CREATE TEMP TABLE versions AS
WITH known AS (
    SELECT DISTINCT to_url, to_key FROM links WHERE link_type::VARCHAR IN ('alternate', 'sitemap')
), entries AS (
    SELECT url AS place, unnest(entries) AS to_url, alternates FROM sitemap_versions
), said AS (
    SELECT key, url, unnest(alternates) AS one, '' AS place FROM versioned
    UNION ALL SELECT key, versioned.url, unnest(entries.alternates), place
    FROM entries JOIN known USING (to_url) JOIN versioned ON versioned.key = known.to_key
), named AS (
    SELECT key, url, split_part(one, ' ', 1) AS code, substr(one, strpos(one, ' ') + 1) AS to_url, min(place) AS place
    FROM said GROUP BY key, url, one
)
SELECT * FROM named LEFT JOIN known USING (to_url);
CREATE TEMP MACRO placed(line, place) AS line || CASE WHEN place = '' THEN '' ELSE ' (' || place || ')' END;
-- Versions of one page may share a title, such as en-GB and en-US: each names all, so that the least is their name.
CREATE TEMP VIEW families AS
SELECT listed.*, coalesce(family, key) AS family
FROM listed LEFT JOIN (SELECT key, min(to_key) AS family FROM versions GROUP BY key) USING (key);

-- broken_link
SELECT url, detail, pages FROM attempts WHERE is_broken

-- redirect_loop
SELECT url, detail, pages FROM loops

-- redirect_chain
SELECT url, detail, pages FROM ways WHERE loop IS NULL AND len(urls) > 2 AND NOT is_target

-- invalid_link
SELECT link, 'no valid address', list(DISTINCT url ORDER BY url)[1:getvariable('most')]
FROM (SELECT url, unnest(invalid_links) AS link FROM documents) GROUP BY link

-- missing_fragment
SELECT url, 'no element has this id or name', pages FROM lost

-- redirect_permanent
SELECT url, 'HTTP ' || status || ' to ' || target, pages FROM (
    SELECT latest.*, (SELECT max(links.to_url) FROM links
        WHERE links.from_url = latest.url AND links.link_type::VARCHAR = 'redirect') AS target, pages
    FROM latest JOIN linking USING (key)
    WHERE outcome = 'redirected' AND status IN (301, 308) AND key IN (FROM clicked)
) WHERE replace(target, 'https://', 'http://') <> url
    -- A permanent redirect into a loop has no better address to link to.
    AND url NOT IN (SELECT unnest(urls) FROM loops)

-- redirect_to_https
SELECT latest.url, 'to ' || target.to_url, pages FROM latest JOIN linking USING (key)
JOIN links AS target ON target.from_url = latest.url AND target.link_type::VARCHAR = 'redirect'
WHERE outcome = 'redirected' AND latest.key IN (FROM clicked) AND latest.url LIKE 'http://%'
    AND replace(target.to_url, 'https://', 'http://') = latest.url AND target.to_url LIKE 'https://%'

-- mixed_content
SELECT url, array_to_string(insecure, ' '), NULL FROM html WHERE len(insecure) > 0

-- canonical_broken
SELECT page.url, 'to ' || target.url || ': ' || unlisted.why, NULL
FROM documents AS page JOIN canonical USING (key) JOIN latest AS target ON target.key = canonical.to_key
JOIN unlisted ON unlisted.key = target.key
WHERE target.key <> page.key AND NOT regexp_matches(page.robots, '\b(noindex|none)\b')

-- canonical_chain
SELECT page.url, 'to ' || target.url || ', whose canonical is ' || further.to_url, NULL
FROM documents AS page JOIN canonical USING (key)
JOIN documents AS target ON target.key = canonical.to_key AND target.key <> page.key
JOIN canonical AS further ON further.key = target.key AND further.to_key <> target.key

-- canonical_contradiction
SELECT url, array_to_string(list(DISTINCT to_url ORDER BY to_url)[1:5], ' '), NULL
FROM documents JOIN canonicals USING (key) GROUP BY url HAVING count(DISTINCT to_key) > 1
UNION ALL SELECT url, 'noindex, and its canonical is ' || to_url, NULL
FROM documents JOIN canonical USING (key)
WHERE regexp_matches(robots, '\b(noindex|none)\b') AND to_key <> key

-- outside_head
SELECT url, array_to_string(outside_head[1:5], ', '), NULL FROM documents WHERE len(outside_head) > 0

-- hreflang_code
SELECT url, placed(array_to_string(list(DISTINCT code ORDER BY code), ' '), place), NULL FROM versions
WHERE lower(code) <> 'x-default' AND NOT (
    regexp_matches(code, '(?i)^[a-z]{2}(-[a-z]{4})?(-([a-z]{2}|[0-9]{3}))?$')
    AND list_contains(getvariable('languages'), lower(code[1:2]))
    AND (NOT regexp_matches(code, '(?i)-[a-z]{2}$') OR list_contains(getvariable('regions'), upper(code[-2:])))
) GROUP BY url, place

-- hreflang_broken
SELECT url, array_to_string(list(DISTINCT line ORDER BY line)[1:10], ', '), NULL FROM (
    SELECT url, placed(code || ' to ' || to_url || ': ' || why, place) AS line
    FROM versions JOIN unlisted ON unlisted.key = versions.to_key WHERE versions.key <> versions.to_key
) GROUP BY url

-- hreflang_contradiction
SELECT url, lower(code) || ' is ' || array_to_string(list(DISTINCT placed(to_url, place) ORDER BY placed(to_url, place))[1:5], ' and '), NULL
FROM versions GROUP BY url, lower(code) HAVING count(DISTINCT coalesce(to_key, to_url)) > 1
UNION ALL SELECT url, placed('the page does not name itself', min(place)), NULL
FROM versions GROUP BY url HAVING bool_and(coalesce(to_key, '') <> key AND to_url <> url) AND bool_or(to_key IS NOT NULL)

-- hreflang_return
SELECT versions.url, placed('no link back from ' || array_to_string(list(DISTINCT page.url ORDER BY page.url)[1:10], ' '), versions.place), NULL
FROM versions JOIN versioned AS page ON page.key = versions.to_key AND page.key <> versions.key
LEFT JOIN versions AS other ON other.key = versions.to_key AND other.to_key = versions.key
WHERE other.key IS NULL GROUP BY versions.url, versions.place

-- sitemap_contradiction
SELECT url, CASE WHEN outcome = 'robots_denied' THEN 'robots.txt disallows it' WHEN outcome = 'redirected' THEN 'redirects'
        WHEN to_key <> key THEN 'its canonical is ' || to_url ELSE 'robots directive: ' || directives END, NULL
FROM latest SEMI JOIN mapped USING (key) LEFT JOIN canonical USING (key)
WHERE outcome IN ('robots_denied', 'redirected')
    OR outcome = 'fetched' AND (to_key <> key OR regexp_matches(directives, '\b(noindex|none)\b'))

-- duplicate_title
SELECT first(url ORDER BY url), title, list(url ORDER BY url)[2:getvariable('most')] FROM families
WHERE title <> '' GROUP BY title HAVING count(DISTINCT family) > 1

-- missing_title
SELECT url, '', NULL FROM documents WHERE title = ''

-- missing_description
SELECT url, '', NULL FROM listed WHERE coalesce(description, '') = '' OR description_count = 0

-- orphan
WITH linked AS (
    SELECT DISTINCT to_key AS key FROM links LEFT JOIN latest AS page ON page.url = links.from_url
    WHERE links.link_type::VARCHAR NOT IN ('sitemap', 'sitemap_file', 'canonical', 'self')
        AND page.key IS DISTINCT FROM links.to_key
)
SELECT url, '', NULL FROM latest SEMI JOIN mapped USING (key) ANTI JOIN linked USING (key)
WHERE link_type <> 'seed' AND url NOT IN (SELECT url FROM attempts WHERE is_broken)

-- soft_404
SELECT url, CASE WHEN regexp_matches(title, getvariable('absent')) THEN title ELSE h1[1] END, pages
FROM documents LEFT JOIN linking USING (key)
WHERE status = 200 AND words < 300
    AND (regexp_matches(title, getvariable('absent')) OR regexp_matches(coalesce(h1[1], ''), getvariable('absent')))

-- duplicate_page
WITH copies AS (
    SELECT duplicate_of AS first, list(url) AS urls FROM html
    WHERE duplicate_of <> '' AND key NOT IN (SELECT key FROM canonical) GROUP BY duplicate_of
)
SELECT all_urls[1], len(all_urls) || ' URLs have the same content', all_urls[2:getvariable('most')] FROM (
    SELECT list_sort(list_append(urls, copies.first)) AS all_urls
    FROM copies JOIN html ON html.url = copies.first WHERE html.key NOT IN (SELECT key FROM canonical)
)

-- near_duplicate_page
WITH alike AS (
    SELECT page.near_duplicate_of AS first, list(page.url) AS urls
    FROM families AS page JOIN families AS original ON original.url = page.near_duplicate_of
    WHERE coalesce(page.words, 50) >= 50 AND page.family <> original.family GROUP BY page.near_duplicate_of
)
SELECT all_urls[1], len(all_urls) || ' pages have nearly the same content', all_urls[2:getvariable('most')] FROM (
    SELECT list_sort(list_append(urls, alike.first)) AS all_urls FROM alike JOIN listed ON listed.url = alike.first
)

-- duplicate_description
SELECT first(url ORDER BY url), description, list(url ORDER BY url)[2:getvariable('most')] FROM families
WHERE description <> '' GROUP BY description HAVING count(DISTINCT family) > 1

-- multiple_titles
SELECT url, title_count || ' title elements', NULL FROM documents WHERE title_count > 1

-- multiple_descriptions
SELECT url, description_count || ' descriptions', NULL FROM documents WHERE description_count > 1

-- long_title
SELECT url, length(title) || ' characters: ' || title, NULL FROM listed WHERE length(title) > 60

-- long_description
SELECT url, length(description) || ' characters', NULL FROM listed WHERE length(description) > 160

-- missing_h1
SELECT url, '', NULL FROM listed WHERE NOT is_scripted AND h1 IS NOT NULL AND len([one FOR one IN h1 IF one <> '']) = 0

-- multiple_h1
SELECT url, array_to_string(h1, ' | '), NULL FROM listed WHERE len(h1) > 1

-- long_h1
SELECT url, length(h1[1]) || ' characters', NULL FROM listed WHERE length(h1[1]) > 70

-- missing_lang
SELECT url, '', NULL FROM documents WHERE ids IS NOT NULL AND coalesce(declared_language, '') = ''

-- wrong_lang
-- The last ones are former codes, which BCP 47 keeps.
SELECT url, declared_language, NULL FROM documents WHERE ids IS NOT NULL AND declared_language <> '' AND NOT (
    regexp_matches(declared_language, '(?i)^([a-z]{2,3}|[ix])(-[a-z0-9]{1,8})*$')
    AND (length(split_part(declared_language, '-', 1)) <> 2
        OR list_contains(getvariable('languages'), lower(declared_language[1:2]))
        OR lower(declared_language[1:2]) IN ('in', 'iw', 'ji', 'jw', 'mo', 'sh')))

-- missing_alt
SELECT image, 'image without alt', list(url ORDER BY url)[1:getvariable('most')]
FROM (SELECT DISTINCT url, unnest(images_without_alt) AS image FROM documents) GROUP BY image

-- invalid_structured_data
SELECT url, json_ld_error, NULL FROM documents WHERE json_ld_error <> ''

-- incomplete_structured_data
SELECT url, array_to_string(json_ld_lacks[1:5], '; '), NULL FROM documents WHERE len(json_ld_lacks) > 0

-- refresh
SELECT page.url, 'to ' || max(links.to_url), NULL FROM documents AS page JOIN links ON links.from_url = page.url
WHERE links.link_type::VARCHAR = 'meta_refresh' AND links.to_key <> page.key GROUP BY page.url

-- deep_page
SELECT url, 'more than 4 clicks from the start', NULL FROM listed
WHERE key NOT IN (FROM near_start) AND link_type <> 'seed' AND key IN (
    SELECT edges.key FROM edges JOIN documents AS page ON page.url = edges.from_url WHERE page.key <> edges.key)

-- slow_page
SELECT url, printf('%.1f s', fetch_s), NULL FROM html WHERE fetch_s > 3

-- heavy_page
SELECT page.url, printf('%.1f MB with %d embeds', sum(part.wire_bytes) / 1e6, count(*) - 1), NULL
FROM documents AS page JOIN (
    SELECT DISTINCT from_url, to_key AS key FROM links WHERE link_type::VARCHAR = 'embed'
    UNION SELECT url, key FROM documents
) AS embeds ON embeds.from_url = page.url JOIN latest AS part ON part.key = embeds.key
GROUP BY page.url HAVING sum(part.wire_bytes) > 3000000

-- seed_not_checked
SELECT url, detail, pages FROM attempts WHERE is_unchecked AND is_seed AND NOT is_broken

-- not_reached
SELECT url, detail, pages FROM attempts WHERE is_unreached

-- not_checked
SELECT url, detail, pages FROM attempts WHERE is_unchecked AND NOT is_seed AND NOT is_broken

-- start
CREATE TEMP TABLE near_start AS
SELECT key FROM latest WHERE link_type = 'seed'
UNION SELECT to_key FROM behind JOIN latest USING (key) WHERE link_type = 'seed'

-- click
INSERT INTO near_start SELECT DISTINCT edges.key FROM edges JOIN latest AS page ON page.url = edges.from_url
WHERE page.key IN (FROM near_start) AND page.link_type NOT IN ('outlink', 'sitemap_file', 'feed_file')
    AND edges.key NOT IN (FROM near_start)
