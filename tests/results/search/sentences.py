"""Sentences: pages in many languages, and queries as their readers type them, each with the page that answers.

Modelled on reports of users: quickwit-oss/tantivy#718 and #855 (Chinese, Japanese), openlibrary#599 and dataverse#1720
(accents, colons), tantivy-py#70; on Lucene's word delimiter, which divides words and numbers; and on the examples of
UAX 15 and of Snowball.
"""

from __future__ import annotations

PAGES: dict[str, tuple[str, str]] = {
    "zh": ("zh", "认证系统使用令牌来保护接口,用户需要重新登录。"),
    "zh-tw": ("zh", "臺北市立圖書館週末照常開放,歡迎民眾借閱。"),
    "ja": ("ja", "東京都の陶芸家は薪窯で焼成する。還元焼成が大切である。ﾃﾞｰﾀを保存する。"),
    "ja-2": ("ja", "京都と東京のあいだを新幹線が走る。"),
    "th": ("th", "ช่างปั้นสร้างเตาเผาบนภูเขา"),
    "lo": ("lo", "ພາສາລາວເປັນພາສາທາງການ"),
    "km": ("km", "ភាសាខ្មែរជាភាសាផ្លូវការ"),
    "my": ("my", "မြန်မာဘာသာစကားသည်တရားဝင်ဖြစ်သည်"),
    "ko": ("ko", "한국어를 배우는 학생들이 도서관에서 책을 읽는다."),
    "hi": ("hi", "हिन्दी भाषा में किताबें पढ़ना"),
    "ar": ("ar", "العَرَبِيَّة لغة جميلة في الكتـــاب"),
    "he": ("he", "שָׁלוֹם עולם"),
    "fa": ("fa", "می‌خواهم کتاب بخوانم در \u06f1\u06f9\u06f8\u06f4"),
    "el": ("el", "\u039f Οδυσσεύς ταξίδευε στη θάλασσα"),
    "ru": ("ru", "Ёлка стояла в комнате, дети пели песни"),
    "tr": ("tr", "İstanbul'da \u0131slak sokaklar"),
    "vi": ("vi", "Đường phố Hà Nội"),
    "de": ("de", "Die Straße führt zu den Häusern am Fluß; Donau\u00addampf\u00adschiff"),
    "fr": ("fr", "Les chevaux mangent près du cœur de la forêt, l\u2019été"),
    "es": ("es", "Le cafe\u0301 de Ma\u0301laga y los niños"),
    "pl": ("pl", "Łódź leży w Polsce"),
    "da": ("da", "Smørrebrød på Ærø"),
    "en": ("en", "The ofﬁce was running three commits behind; running late"),
    "code": (
        "en",
        "Call std::vector or doi:10.1000/182 at 12:30, open C:\\x and foo_bar; see https://example.org/guide/a.html",
    ),
    "parts": (
        "en",
        "An e-mail; Node.js, getUserById, XMLHttpRequest; haven\u2019t 1,000,000 U.S.A. database v2.0.1 école",
    ),
    "ship": ("de", "Die Donaudampfschifffahrtsgesellschaft fuhr; un éléphant"),
    "nukta": ("hi", "क़लम"),
    "joiner": ("fa", "\u06a9\u062a\u0627\u0628\u200c\u0647\u0627"),
    "wide": ("", "\uff27\uff4f\uff53\uff53\uff41\uff4d\uff45\uff52\u3000crawls"),
    "marks": ("ca", "col·lecció, Hawai\u02bbi, \u043e\u0431\u02bc\u0454\u043a\u0442"),
    "sold": (
        "en",
        "Sold for $1,299.99 🎉 to a 👨\u200d👩\u200d👧 of 🇩🇪, rated \u2605\u2605, \u2764\ufe0f; paid 2499,50 \u20ac",
    ),
    "army": ("he", "צה״ל"),
    "numbers": (
        "en",
        "gcc -O2 of Fedora39; 5GHz, 32GB, RFC 9110, Perl 5.38, 4:55pm, 2021-04-03T12:00:00Z, 1706.03762v5, 98 765,4 kr",
    ),
    "space": ("no", "7\u202f654\u202f321 km"),
    "zero": ("", "un\u200bbreak\u2060able"),
}
QUERIES: tuple[tuple[str, str], ...] = (
    ("令牌", "zh"), ("登录", "zh"), ("重新登录", "zh"), ("圖書館", "zh-tw"), ("臺", "zh-tw"),
    ("陶芸家", "ja"), ("焼成", "ja"), ("東京都", "ja"), ("データ", "ja"), ("窯", "ja"), ("新幹線", "ja-2"),
    ("ภูเขา", "th"), ("เตาเผา", "th"), ("ພາສາລາວ", "lo"), ("ខ្មែរ", "km"), ("ភាសា", "km"), ("မြန်မာ", "my"),
    ("한국어", "ko"), ("도서관", "ko"), ("책", "ko"), ("किताबें", "hi"), ("हिन्दी", "hi"),
    ("العربية", "ar"), ("الكتاب", "ar"), ("שלום", "he"), ("میخواهم", "fa"), ("می‌خواهم", "fa"), ("كتاب", "fa"),
    ("1984", "fa"), ("ΟΔΥΣΣΕΥΣ", "el"), ("οδυσσευς", "el"), ("θαλασσα", "el"), ("елка", "ru"), ("песня", "ru"),
    ("istanbul", "tr"), ("İSTANBUL", "tr"), ("duong pho", "vi"), ("STRASSE", "de"), ("haus", "de"), ("häuser", "de"),
    ("fluss", "de"), ("donaudampfschiff", "de"), ("forets", "fr"), ("coeur", "fr"), ("foret", "fr"), ("l'été", "fr"),
    ("l'ete", "fr"), ("café", "es"), ("cafe", "es"), ("malaga", "es"), ('"cafe de malaga"', "es"), ("ninos", "es"),
    ("lodz", "pl"), ("smorrebrod", "da"), ("aero", "da"), ("office", "en"), ("run", "en"), ("commit*", "en"),
    ("commit", "en"), ("std::vector", "code"), ("doi:10.1000/182", "code"), ("12:30", "code"), ("C:\\x", "code"),
    ("foo_bar", "code"), ("https://example.org/guide/a.html", "code"), ("“std vector”", "code"), ("std::vec*", "code"),
    ("vector -run", "code"), ("email", "parts"), ("nodejs", "parts"), ("user by id", "parts"),
    ("get_user_by_id", "parts"), ("http request", "parts"), ("havent", "parts"), ("1000000", "parts"), ("USA", "parts"),
    ("data-base", "parts"), ("2.0.1", "parts"), ("l'école", "parts"), ("schifffahrt", "ship"), ('"un eleph"*', "ship"),
    ("कलम", "nukta"), ("\u06a9\u062a\u0627\u0628 \u0647\u0627", "joiner"),
    ("\u043e\u0431'\u0454\u043a\u0442", "marks"), ("\u043e\u0431\u02bc\u0454\u043a\u0442", "marks"),
    ("hawaii", "marks"), ("Hawai'i", "marks"),
    ("col·lecció", "marks"), ("collecció", "marks"), ("col.lecció", "marks"), ("colleccio", "marks"),
    ("1299.99", "sold"), ("$1,299.99", "sold"), ("1.299,99", "sold"), ("2,499.50", "sold"), ("🎉", "sold"),
    ("👨\u200d👩\u200d👧", "sold"), ("🇩🇪", "sold"), ("\u2605", "sold"), ("\u2764", "sold"), ("\u2764\ufe0f", "sold"),
    ('"🎉" sold', "sold"),
    ('צה"ל', "army"), ('"-O2"', "numbers"), ("fedora 39", "numbers"), ("5 GHz", "numbers"), ("32 GB", "numbers"),
    ("1706.03762", "numbers"), ("RFC9110", "numbers"), ("perl5.38", "numbers"),
    ("4:55pm", "numbers"), ("2021-04-03", "numbers"), ("7654321", "space"), ("98765.4", "numbers"),
    ("gossamer", "wide"), ("unbreakable", "zero"), ("un\u00adbreakable", "zero"),
)  # fmt: skip
