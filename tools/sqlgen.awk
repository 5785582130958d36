# Named SQL statements → statements.h (enum stmt) and statements.c (their texts).
#
#   awk -v part=h|c -f tools/sqlgen.awk src/sql/*.sql
#
# A statement begins with its header and ends where the next one begins:
#
#   -- name: queue_finish (state text, request_id bigint) -> (id bigint)
#
# A header may go on in the next lines, each beginning with --, until it is complete.
# Types: bigint, text, double, bytea, bigint[], text[]. ROOM.sql is for both databases;
# ROOM.pg.sql and ROOM.sqlite.sql override or add for one. The header of an override
# must be the same. SQLite numbers $1 … $n by first appearance, so they must appear in
# that order; and it takes $1::type for a name, so that is refused.

function fail(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text > "/dev/stderr"
    failed = 1
    exit 1
}

function finish(    rest, seen, n) {
    if (name == "")
        return
    gsub(/^[ \n]+|[ \n]+$/, "", text)
    sub(/;$/, "", text)
    rest = text
    while (match(rest, /\$[0-9]+/)) {
        n = substr(rest, RSTART + 1, RLENGTH - 1) + 0
        rest = substr(rest, RSTART + RLENGTH)
        if (n > seen + 1)
            fail(name ": $" n " appears before $" seen + 1)
        if (n > seen)
            seen = n
        if (rest ~ /^::/)
            fail(name ": write CAST($" n " AS type), SQLite cannot read $" n "::type")
    }
    if (seen != count[name])
        fail(name ": the header has " count[name] " parameters, the text " seen + 0)
    gsub(/\\/, "\\\\", text)
    gsub(/"/, "\\\"", text)
    gsub(/\n/, "\\n\"\n        \"", text)
    body[name, kind] = "\"" text "\""
    name = ""
}

FNR == 1 {
    finish()
    kind = FILENAME ~ /\.pg\.sql$/ ? "pg" : FILENAME ~ /\.sqlite\.sql$/ ? "sqlite" : "both"
}

/^-- name: / {
    finish()
    while ($0 !~ /\)$/ && (getline more) > 0 && sub(/^-- */, " ", more))
        $0 = $0 more
    if ($0 !~ /^-- name: [a-z][a-z0-9_]* \([^()]*\)( -> \([^()]*\))?$/)
        fail("a header reads: -- name: word (name type, …) -> (name type, …)")
    name = $3
    split($0, part_of, /[()]/)
    if ((name, kind) in body)
        fail(name " is here twice")
    if (name in header && header[name] != $0)
        fail(name ": the header differs from the one in another file")
    if (!(name in header))
        order[++total] = name
    header[name] = $0
    columns[name] = part_of[4]
    count[name] = split(part_of[2], params, / *, */)
    types[name] = ""
    for (i = 1; i <= count[name]; i++) {
        split(params[i], word, " ")
        if (!(word[2] in c_type))
            fail(name ": the type " word[2] " is not one of sqlgen.awk")
        types[name] = types[name] c_type[word[2]] ", "
    }
    text = ""
    next
}

# The comments under a header explain to the reader; the database need not see them.
name != "" && !/^[ \t]*--/ { text = text $0 "\n" }

BEGIN {
    c_type["bigint"] = "DB_INT"; c_type["double"] = "DB_REAL"
    c_type["text"] = "DB_TEXT"; c_type["bytea"] = "DB_BLOB"
    c_type["bigint[]"] = "DB_INT_ARRAY"; c_type["text[]"] = "DB_TEXT_ARRAY"
}

function entry(n, db,    sql) {
    sql = (n, db) in body ? body[n, db] : (n, "both") in body ? body[n, "both"] : "NULL"
    printf "    {.name = \"%s\",\n     .text =\n        %s,\n     .n_params = %d", n, sql, count[n]
    printf "%s},\n", count[n] ? ", .param_types = types_" n : ""
}

END {
    if (!failed)
        finish()
    if (failed)
        exit 1
    print "/* Made by tools/sqlgen.awk from src/sql/; change it there. */"
    if (part == "h") {
        print "#ifndef STORE_STATEMENTS_H\n#define STORE_STATEMENTS_H\n\nenum stmt {"
        for (i = 1; i <= total; i++)
            print "    STMT_" toupper(order[i]) ","
        print "    STMT_COUNT\n};\n\n#endif"
        exit 0
    }
    print "#include \"store/sql_tables.h\"\n"
    for (i = 1; i <= total; i++)
        if (count[order[i]])
            print "static const enum db_type types_" order[i] "[] = {" types[order[i]] "};"
    print "\nstatic const struct db_sql sqlite[STMT_COUNT] = {"
    for (i = 1; i <= total; i++)
        entry(order[i], "sqlite")
    print "};\n\nstatic const struct db_sql pg[STMT_COUNT] = {"
    for (i = 1; i <= total; i++)
        entry(order[i], "pg")
    print "};\n\nconst struct db_sql *const store_statements[2] = {sqlite, pg};\n"
    print "const char *const store_statement_columns[STMT_COUNT] = {"
    for (i = 1; i <= total; i++)
        print "    \"" columns[order[i]] "\","
    print "};"
}
