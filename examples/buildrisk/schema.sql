-- The tables of the thirteen jobs, on PostgreSQL and SQLite alike; schema.pg.sql or
-- schema.sqlite.sql comes first. They live in the store's own database, so that rows,
-- ledgers and pawl's note of how far a step is commit together.
--
-- A view br_pending_… tells what a job has still to ask for: what is handled has a row in
-- a ledger, which is written in the transaction of the data. So a job that was stopped
-- begins with what is left, and nothing is asked for twice.
-- Dates are texts as the services write them.

-- 1 corp-code-sync
CREATE TABLE br_corp (
    corp_code     text PRIMARY KEY,
    corp_name     text NOT NULL,
    corp_eng_name text,
    stock_code    text,
    modify_date   text NOT NULL,
    changes       integer NOT NULL -- how often another content has come
);

-- 2 company-profile
CREATE TABLE br_company (
    corp_code  text PRIMARY KEY,
    outcome    text NOT NULL,
    fetched_on text NOT NULL,
    corp_name  text,
    stock_code text,
    market     text, -- Y KOSPI, K KOSDAQ, N KONEX, E none
    industry   text,
    ceo        text,
    address    text,
    acc_month  text
);
CREATE VIEW br_pending_company AS
SELECT c.corp_code
FROM br_corp c LEFT JOIN br_company p ON p.corp_code = c.corp_code
WHERE c.stock_code IS NOT NULL
  AND (p.corp_code IS NULL
       OR replace(p.fetched_on, '-', '') < c.modify_date
       OR p.fetched_on < (SELECT day FROM br_days WHERE age = 30));

-- Whom the other jobs look at: building companies on a market, and what people say.
CREATE TABLE br_universe_override (corp_code text PRIMARY KEY, included integer NOT NULL);
CREATE TABLE br_universe (corp_code text PRIMARY KEY, stock_code text NOT NULL);

-- 3 financial-statement
CREATE TABLE br_report (report text PRIMARY KEY, due text NOT NULL, due_next_year integer NOT NULL);
INSERT INTO br_report VALUES
    ('11013', '05-15', 0), ('11012', '08-14', 0), ('11014', '11-14', 0), ('11011', '03-31', 1);
CREATE TABLE br_statement_ledger (
    corp_code  text NOT NULL,
    year       text NOT NULL,
    report     text NOT NULL,
    outcome    text NOT NULL,
    accounts   integer NOT NULL,
    fetched_on text NOT NULL,
    PRIMARY KEY (corp_code, year, report)
);
CREATE TABLE br_statement (
    corp_code      text NOT NULL,
    year           text NOT NULL,
    report         text NOT NULL,
    division       text NOT NULL, -- CFS the group, OFS the company alone
    part           text NOT NULL,
    account_id     text NOT NULL,
    account_detail text NOT NULL,
    ord            text NOT NULL,
    account_name   text,
    amount         bigint,
    amount_before  bigint,
    PRIMARY KEY (corp_code, year, report, division, part, account_id, account_detail, ord)
);
CREATE VIEW br_pending_statement AS
SELECT d.corp_code, d.year, d.report, d.due
FROM (SELECT u.corp_code, y.year, r.report,
             CAST(CAST(y.year AS integer) + r.due_next_year AS text) || '-' || r.due AS due
      FROM br_universe u, br_report r,
           (SELECT DISTINCT substr(month, 1, 4) AS year FROM br_months WHERE age <= 36) y) d
     LEFT JOIN br_statement_ledger l
        ON l.corp_code = d.corp_code AND l.year = d.year AND l.report = d.report
WHERE d.due < (SELECT day FROM br_today)
  AND (l.corp_code IS NULL
       OR (l.outcome = 'no-data'
           AND l.fetched_on < (SELECT day FROM br_days WHERE age = 30)
           AND d.due > (SELECT day FROM br_days WHERE age = 730)));

-- 4 disclosure-sync
CREATE TABLE br_filing_sync (corp_code text PRIMARY KEY, synced_on text NOT NULL);
CREATE TABLE br_filing_kind (rank integer PRIMARY KEY, pattern text NOT NULL, kind text NOT NULL);
INSERT INTO br_filing_kind VALUES
    (1, '%공급계약%', 'CONTRACT'), (2, '%채무보증%', 'GUARANTEE'),
    (3, '%유상증자%', 'CAPITAL'), (4, '%보고서%', 'REPORT');
CREATE TABLE br_filing (
    rcept_no    text PRIMARY KEY,
    corp_code   text NOT NULL,
    report_name text NOT NULL,
    filer       text,
    filed_on    text NOT NULL,
    kind        text
);

-- 5 filing-parse
CREATE TABLE br_document (
    rcept_no    text PRIMARY KEY,
    outcome     text NOT NULL,
    fetched_on  text NOT NULL,
    content     text,
    parser      integer NOT NULL, -- which parser has read it; 0 none
    amount      bigint,
    sales       bigint,
    partner     text,
    parse_error text,
    corrects    text -- rcept_no of the filing that this one puts right
);
CREATE VIEW br_pending_document AS
SELECT f.rcept_no, f.filed_on
FROM br_filing f LEFT JOIN br_document d ON d.rcept_no = f.rcept_no
WHERE f.kind IN ('CONTRACT', 'GUARANTEE') AND d.rcept_no IS NULL;
-- What stands in the cell after the one with a label; null when there is no such cell.
CREATE VIEW br_document_cell AS
SELECT rcept_no, label,
       CASE WHEN instr(content, label || '</td><td>') > 0 THEN
           substr(tail, 1, instr(tail, '</td>') - 1) END AS value
FROM (SELECT d.rcept_no, d.content, l.label,
             substr(d.content, instr(d.content, l.label || '</td><td>')
                               + length(l.label || '</td><td>')) AS tail
      FROM br_document d,
           (SELECT '계약금액(원)' AS label UNION ALL SELECT '최근매출액(원)'
            UNION ALL SELECT '계약상대') l
      WHERE d.content IS NOT NULL) t;
CREATE VIEW br_document_read AS
SELECT d.rcept_no,
       CASE WHEN trim(a.value, '0123456789,') = '' AND a.value <> ''
            THEN CAST(replace(a.value, ',', '') AS bigint) END AS amount,
       CASE WHEN trim(s.value, '0123456789,') = '' AND s.value <> ''
            THEN CAST(replace(s.value, ',', '') AS bigint) END AS sales,
       replace(replace(replace(p.value, '&lt;', '<'), '&gt;', '>'), '&amp;', '&') AS partner
FROM br_document d
     LEFT JOIN br_document_cell a ON a.rcept_no = d.rcept_no AND a.label = '계약금액(원)'
     LEFT JOIN br_document_cell s ON s.rcept_no = d.rcept_no AND s.label = '최근매출액(원)'
     LEFT JOIN br_document_cell p ON p.rcept_no = d.rcept_no AND p.label = '계약상대';

-- 6 boundary-load: what came, and what is in force
CREATE TABLE br_region_new (
    code     text PRIMARY KEY,
    name     text NOT NULL,
    full_name text NOT NULL,
    geometry text NOT NULL,
    source   text NOT NULL
);
CREATE TABLE br_region (
    code     text PRIMARY KEY,
    name     text NOT NULL,
    full_name text NOT NULL,
    geometry text NOT NULL,
    source   text NOT NULL
);
-- A row with 0 is refused, and the message names this.
CREATE TABLE br_guard (
    allowed integer,
    CONSTRAINT another_source_needs_confirmPurge CHECK (allowed = 1)
);
CREATE TABLE br_province (code text PRIMARY KEY, name text NOT NULL);
INSERT INTO br_province VALUES
    ('11', '서울'), ('21', '부산'), ('22', '대구'), ('23', '인천'), ('24', '광주'),
    ('25', '대전'), ('26', '울산'), ('29', '세종'), ('31', '경기'), ('32', '강원'),
    ('33', '충북'), ('34', '충남'), ('35', '전북'), ('36', '전남'), ('37', '경북'),
    ('38', '경남'), ('39', '제주');

-- 7 sgis-household
CREATE TABLE br_household (
    region     text NOT NULL,
    year       text NOT NULL,
    households bigint NOT NULL,
    PRIMARY KEY (region, year)
);

-- 8 kosis-unsold
CREATE TABLE br_unsold (
    province text NOT NULL,
    month    text NOT NULL,
    homes    integer NOT NULL,
    PRIMARY KEY (province, month)
);

-- 9 rone-index
CREATE TABLE br_index_series (table_id text PRIMARY KEY, title text NOT NULL);
INSERT INTO br_index_series VALUES
    ('A_2024_00045', '매매가격지수'), ('A_2024_00050', '전세가격지수');
CREATE TABLE br_index (
    table_id text NOT NULL,
    region   text NOT NULL,
    month    text NOT NULL,
    value    double precision NOT NULL,
    PRIMARY KEY (table_id, region, month)
);

-- 10 apt-trade
CREATE TABLE br_district (district text PRIMARY KEY);
CREATE TABLE br_trade_ledger (
    district   text NOT NULL,
    month      text NOT NULL,
    trades     integer NOT NULL,
    fetched_on text NOT NULL,
    PRIMARY KEY (district, month)
);
CREATE TABLE br_trade (
    district  text NOT NULL,
    month     text NOT NULL,
    apartment text NOT NULL,
    quarter   text,
    day       integer NOT NULL,
    area      numeric(9, 2) NOT NULL,
    floor     integer,
    built     integer,
    amount    bigint NOT NULL, -- in 10,000 won
    cancelled text -- the day on which it was taken back
);
CREATE INDEX br_trade_cell ON br_trade (district, month);
-- The last three months still change: they are asked for once a day.
CREATE VIEW br_pending_trade AS
SELECT d.district, m.month, m.age
FROM br_district d CROSS JOIN br_months m
     LEFT JOIN br_trade_ledger l ON l.district = d.district AND l.month = m.month
WHERE l.district IS NULL OR (m.age < 3 AND l.fetched_on < (SELECT day FROM br_today));
CREATE TABLE br_trade_month (
    district text NOT NULL,
    month    text NOT NULL,
    deals    integer NOT NULL,
    per_area double precision, -- amount of a square metre, on average
    PRIMARY KEY (district, month)
);

-- 11 stock-price
CREATE TABLE br_stock_ledger (stock_code text PRIMARY KEY, checked_on text NOT NULL);
CREATE TABLE br_stock_price (
    stock_code text NOT NULL,
    day        text NOT NULL,
    close      bigint NOT NULL,
    volume     bigint NOT NULL,
    PRIMARY KEY (stock_code, day)
);
-- From the day after the last one that is there; the first time `years` back.
CREATE VIEW br_pending_stock AS
SELECT u.stock_code, d.age - 1 AS since_age, d.age IS NULL AS is_new
FROM br_universe u
     LEFT JOIN br_stock_ledger l ON l.stock_code = u.stock_code
     LEFT JOIN br_days d
        ON d.ymd = (SELECT max(p.day) FROM br_stock_price p WHERE p.stock_code = u.stock_code)
WHERE l.stock_code IS NULL OR l.checked_on < (SELECT day FROM br_today);

-- 12 standardize-metric
CREATE TABLE br_standard (
    corp_code   text NOT NULL,
    year        text NOT NULL,
    report      text NOT NULL,
    fetched_on  text NOT NULL, -- of the statement that it was made from
    assets      bigint,
    liabilities bigint,
    equity      bigint,
    revenue     bigint,
    operating   bigint,
    PRIMARY KEY (corp_code, year, report)
);
CREATE VIEW br_pending_standard AS
SELECT l.corp_code, l.year, l.report, l.fetched_on
FROM br_statement_ledger l
     LEFT JOIN br_standard s
        ON s.corp_code = l.corp_code AND s.year = l.year AND s.report = l.report
WHERE l.outcome = 'ok' AND (s.corp_code IS NULL OR s.fetched_on < l.fetched_on);
CREATE TABLE br_company_metric (
    corp_code  text NOT NULL,
    year       text NOT NULL,
    report     text NOT NULL,
    debt_ratio double precision, -- per cent
    margin     double precision, -- per cent
    PRIMARY KEY (corp_code, year, report)
);
CREATE TABLE br_region_metric (
    district   text PRIMARY KEY,
    month      text NOT NULL, -- the last that is whole
    deals      integer NOT NULL,
    price_change double precision -- per cent against the month before
);

-- 13 rule-eval
CREATE TABLE br_rule (
    rule      text PRIMARY KEY,
    title     text NOT NULL,
    threshold double precision NOT NULL
);
INSERT INTO br_rule VALUES
    ('DEBT', '부채비율', 200), ('MARGIN', '영업이익률', 0), ('PRICE', '가격 하락', 5);
CREATE TABLE br_alert (
    rule     text NOT NULL,
    target   text NOT NULL,
    period   text NOT NULL,
    value    double precision NOT NULL,
    evidence text NOT NULL,
    seen     integer NOT NULL, -- how often the rule has said so
    CONSTRAINT an_alert_needs_evidence CHECK (trim(evidence) <> ''),
    PRIMARY KEY (rule, target, period)
);
CREATE VIEW br_rule_hit AS
SELECT r.rule, m.corp_code AS target, m.year || '-' || m.report AS period, m.debt_ratio AS value,
       'liabilities ' || s.liabilities || ', equity ' || s.equity AS evidence
FROM br_rule r, br_company_metric m
     JOIN br_standard s
        ON s.corp_code = m.corp_code AND s.year = m.year AND s.report = m.report
WHERE r.rule = 'DEBT' AND m.debt_ratio > r.threshold
UNION ALL
SELECT r.rule, m.corp_code, m.year || '-' || m.report, m.margin,
       'operating ' || s.operating || ', revenue ' || s.revenue
FROM br_rule r, br_company_metric m
     JOIN br_standard s
        ON s.corp_code = m.corp_code AND s.year = m.year AND s.report = m.report
WHERE r.rule = 'MARGIN' AND m.margin < r.threshold
UNION ALL
SELECT r.rule, m.district, m.month, m.price_change, 'deals ' || m.deals
FROM br_rule r, br_region_metric m
WHERE r.rule = 'PRICE' AND m.price_change < 0 - r.threshold;
