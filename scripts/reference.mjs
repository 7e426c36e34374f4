/**
 * The tables of the reference pages, made from the JSON Schema of aftercommit.toml. Pure: text in, text out. A page keeps
 * its prose; what stands between `<!-- generated: name -->` and `<!-- end -->` is replaced.
 */

/** Every section by name. */
export function renderSections(schema) {
  const { observers, ...tables } = schema.properties
  const observer = observers.additionalProperties
  const { actions, ...keys } = observer.properties
  return {
    settings: renderTables(schema, tables),
    observer: renderKeys({ ...observer, properties: keys }),
    retry: renderKeys(keys.retry),
    actions: actions.items.oneOf.map((action) => `### ${action.title}\n\n${renderAction(action)}`).join('\n\n'),
  }
}

export function replaceSections(page, sections) {
  return page.replace(/(<!-- generated: (\w+) -->\n)[\s\S]*?(<!-- end -->)/g, (all, start, name, end) => {
    return sections[name] === undefined ? all : `${start}\n${sections[name]}\n\n${end}`
  })
}

/** Top-level settings first, then a section for each table, then the tables inside it. */
function renderTables(schema, properties) {
  const single = Object.entries(properties).filter(([, property]) => !isTable(property))
  const parts = [renderKeys({ ...schema, properties: Object.fromEntries(single) })]
  for (const [name, property] of Object.entries(properties))
    if (isTable(property)) parts.push(...renderTable(name, property))
  return parts.join('\n\n')
}

function renderTable(name, table) {
  if (table.properties === undefined) return renderTable(`${name}.*`, table.additionalProperties)
  const inner = Object.entries(table.properties).filter(([, property]) => isTable(property))
  const own = Object.entries(table.properties).filter(([, property]) => !isTable(property))
  const heading = `### [${name}]\n\n${table.description}`
  const keys = own.length === 0 ? [] : [renderKeys({ ...table, properties: Object.fromEntries(own) })]
  return [heading, ...keys, ...inner.flatMap(([key, property]) => renderTable(`${name}.${key}`, property))]
}

function renderAction(action) {
  const { type: _, ...keys } = action.properties
  return renderKeys({ ...action, properties: keys })
}

function renderKeys({ properties, required = [] }) {
  const rows = Object.entries(properties).map(([key, property]) => {
    const fallback = property.default === undefined ? '' : `\`${JSON.stringify(property.default)}\``
    return `| \`${key}\` | ${valueText(property)} | ${required.includes(key) ? 'required' : fallback} | ${cell(property.description ?? '')} |`
  })
  return ['| key | value | default | |', '|---|---|---|---|', ...rows].join('\n')
}

function valueText(property) {
  if (property.enum) return property.enum.map((one) => `\`${JSON.stringify(one)}\``).join(', ')
  if (property.anyOf) return [...new Set(property.anyOf.map(valueText))].join(' or ')
  if (property.type === 'array') {
    const items = property.items && Object.keys(property.items).length > 0 ? valueText(property.items) : ''
    return items === '' ? 'list' : `list of ${items}`
  }
  return WORDS[property.type] ?? 'anything'
}

const WORDS = { string: 'text', boolean: 'true or false', integer: 'whole number', number: 'number', object: 'table' }

function isTable(property) {
  return property.type === 'object'
}

function cell(text) {
  return text.replaceAll('|', String.raw`\|`).replaceAll('<', '&lt;')
}
