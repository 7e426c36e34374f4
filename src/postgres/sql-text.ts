/**
 * Cuts SQL text into statements at the semicolons that are not inside a string, a quoted identifier, a comment or a
 * dollar-quoted body. Needed only for what cannot run inside a transaction, as such statements must be sent one by one.
 */
export function splitStatements(text: string): string[] {
  const statements: string[] = []
  let current = ''
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === ';') {
      statements.push(current.trim())
      current = ''
    } else if (!token.startsWith('--') && !token.startsWith('/*')) {
      current += token
    }
  }
  statements.push(current.trim())
  return statements.filter((statement) => statement !== '')
}

/** In order: line comment, block comment, dollar body, string (E strings with escapes first), identifier, anything. */
const TOKEN =
  /--[^\n]*|\/\*[\s\S]*?\*\/|(\$(?:[A-Za-z_]\w*)?\$)[\s\S]*?\1|[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|[\s\S]/g

/** The name of the index that a statement builds concurrently, if that is what it does. */
export function concurrentIndexName(statement: string): string | undefined {
  const match = /^create\s+(?:unique\s+)?index\s+concurrently\s+(?:if\s+not\s+exists\s+)?("(?:[^"]|"")+"|\w+)/i.exec(
    statement,
  )
  const name = match?.[1]
  if (name === undefined) return undefined
  // An unquoted name is folded to lower case, as Postgres does.
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase()
}
