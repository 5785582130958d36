# Named SQL statements → statements.h (enum stmt) and statements.c (their texts).
#
#   awk -v part=h|c -f tools/sqlgen.awk src/sql/*.sql
#
# A statement goes from its header to the next one; src/sql/README.md has the rules. The
# header may take several lines, each beginning with --:
#
#   -- name: queue_finish (state text, request_id bigint) -> (id bigint)
#
# ROOM.sql is for both databases, ROOM.pg.sql and ROOM.sqlite.sql override or add for one.

function fail(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text > "/dev/stderr"
    failed = 1
    exit 1
}

# The header is complete: what it declares.
function declare(    i, word, part_of, params) {
    if (head !~ /^-- name: [a-z][a-z0-9_]* \([^()]*\)( -> \([^()]*\))?$/)
        fail("a header reads: -- name: word (name type, …) -> (name type, …)")
    split(head, word, " ")
    name = word[3]
    if ((name, kind) in body)
        fail(name " is here twice")
    if (name in header && header[name] != head)
        fail(name ": the header differs from the one in another file")
    if (!(name in header))
        order[++total] = name
    header[name] = head
    split(head, part_of, /[()]/)
    columns[name] = part_of[4]
    count[name] = split(part_of[2], params, / *, */)
    types[name] = ""
    for (i = 1; i <= count[name]; i++) {
        split(params[i], word, " ")
        if (!(word[2] in c_type))
            fail(name ": the type " word[2] " is not one of sqlgen.awk")
        types[name] = types[name] c_type[word[2]] ", "
    }
    head = text = ""
}

# The text is complete. SQLite numbers $1 … $n as they appear and takes $1::x for a name.
function finish(    rest, seen, n) {
    if (head != "")
        declare()
    gsub(/^[ \n]+|[ \n]+$/, "", text)
    sub(/;$/, "", text)
    for (rest = text; match(rest, /\$[0-9]+/); rest = substr(rest, RSTART + RLENGTH)) {
        n = substr(rest, RSTART + 1, RLENGTH - 1) + 0
        if (n > seen + 1)
            fail(name ": $" n " appears before $" seen + 1)
        if (n > seen)
            seen = n
        if (substr(rest, RSTART + RLENGTH, 2) == "::")
            fail(name ": write CAST($" n " AS type), SQLite cannot read $" n "::type")
    }
    if (name != "" && seen != count[name])
        fail(name ": the header has " count[name] " parameters, the text " seen + 0)
    gsub(/\\/, "\\\\", text)
    gsub(/"/, "\\\"", text)
    gsub(/\n/, "\\n\"\n        \"", text)
    body[name, kind] = "\"" text "\""
    name = text = ""
}

BEGIN {
    c_type["bigint"] = "DB_INT"; c_type["bigint[]"] = "DB_INT_ARRAY"
    c_type["text"] = "DB_TEXT"; c_type["text[]"] = "DB_TEXT_ARRAY"
    c_type["double"] = "DB_REAL"; c_type["bytea"] = "DB_BLOB"
}
FNR == 1 || /^-- name: / { finish() }
FNR == 1 { kind = FILENAME ~ /\.pg\.sql$/ ? "pg" : FILENAME ~ /\.sqlite\.sql$/ ? "sqlite" : "both" }
/^-- name: / { head = $0; next }
head != "" && (/^-- -> / || (/^--/ && head !~ /\)$/)) { sub(/^-- */, ""); head = head " " $0; next }
head != "" { declare() }
name != "" && !/^[ \t]*--/ { text = text $0 "\n" } # comments are for the reader only

function table(db,    i, n, sql) {
    print "\nstatic const struct db_sql " db "[STMT_COUNT] = {"
    for (i = 1; i <= total; i++) {
        n = order[i]
        sql = (n, db) in body ? body[n, db] : (n, "both") in body ? body[n, "both"] : "NULL"
        printf "    {.name = \"%s\",\n     .text =\n        %s,\n", n, sql
        printf "     .n_params = %d, .param_types = types_%s},\n", count[n], n
    }
    print "};"
}

END {
    if (!failed)
        finish()
    if (failed)
        exit 1
    print "/* Made by tools/sqlgen.awk from src/sql/; change it there. */"
    print part == "h" ? "#pragma once\nenum stmt {" : "#include \"store/sql_tables.h\"\n"
    for (i = 1; i <= total; i++)
        if (part == "h")
            print "    STMT_" toupper(order[i]) ","
        else
            print "static const enum db_type types_" order[i] "[] = {" types[order[i]] "DB_NULL};"
    if (part == "h") {
        print "    STMT_COUNT\n};"
        exit 0
    }
    table("sqlite")
    table("pg")
    print "\nconst struct db_sql *const store_statements[2] = {sqlite, pg};"
    print "\nconst char *const store_statement_columns[STMT_COUNT] = {"
    for (i = 1; i <= total; i++)
        print "    \"" columns[order[i]] "\","
    print "};"
}
