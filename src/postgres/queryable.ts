/**
 * The port through which every statement of this library goes. It is all we ask of a database session, so that a call
 * can join anybody's transaction. Who implements it: our own pool, and one small adapter per client library.
 *
 * What may be assumed: one call is one statement in one round trip, `$1 …` placeholders, and inside a transaction calls
 * run in the order they were made. Parameters are only strings, numbers, booleans and null, each cast in the SQL text
 * by way of `($1::text)::jsonb`: client libraries disagree on how they send anything richer. They disagree on what they
 * return as well, so a statement that may run in somebody else's transaction selects int8, jsonb and timestamps as
 * text, no column of type void, and column names of one word (some rename snake_case).
 */
export interface Queryable {
  /** The configured schema, quoted, ready to stand before a dot. */
  readonly schema: string
  /**
   * Parameters travel as text without a type, as `pg` sends them, so `$1::jsonb` means the same as `($1::text)::jsonb`
   * and spares the planner a conversion. Only the statement that appends one event is written both ways.
   */
  readonly sendsUntyped?: boolean
  query<Row = Record<string, unknown>>(
    text: string,
    values?: readonly Parameter[],
    options?: QueryOptions,
  ): Promise<QueryResult<Row>>
}

export interface QueryOptions {
  /** The same text will come again and again: our own pool may prepare it, others take no notice. */
  readonly repeated?: boolean
  /** The caller of the library allows that the text is prepared on a client of theirs. */
  readonly mayPrepareOnClient?: boolean
}

export type Parameter = string | number | boolean | null

export interface QueryResult<Row> {
  rows: Row[]
  /** Rows returned or changed. */
  rowCount: number
}
