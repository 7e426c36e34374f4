import { describe, expect, it } from 'vitest'
import { checkOnlyPorts, toJsonSchema } from '../../../src/observers/index.ts'

interface Schema {
  $schema?: string
  properties?: Record<string, Schema>
  additionalProperties?: Schema | false
  items?: Schema
  oneOf?: Schema[]
  enum?: string[]
  description?: string
  required?: string[]
  title?: string
}

describe('the JSON Schema for editors', () => {
  const schema = toJsonSchema(checkOnlyPorts({}).actionTypes) as Schema
  const observer = schema.properties?.observers?.additionalProperties as Schema
  const actions = observer.properties?.actions?.items?.oneOf ?? []

  it('is draft 4, which is what TOML editors read', () => {
    expect(schema.$schema).toContain('draft-04')
    expect(JSON.stringify(schema)).not.toMatch(/"(const|if|propertyNames|\$defs)":/)
  })

  it('has every table, closed and described', () => {
    expect(Object.keys(schema.properties ?? {})).toEqual(
      expect.arrayContaining(['include', 'database', 'log', 'runtime', 'providers', 'observers', 'network']),
    )
    expect(schema.additionalProperties).toBe(false)
    for (const [key, table] of Object.entries(schema.properties ?? {})) expect(table.description, key).toBeTruthy()
    for (const [key, table] of Object.entries(observer.properties ?? {})) expect(table.description, key).toBeTruthy()
    expect(observer.additionalProperties).toBe(false)
  })

  it('has the keys of every action type, beside its type and name', () => {
    expect(actions.map(({ title }) => title)).toEqual([...checkOnlyPorts({}).actionTypes.keys()])
    const webhook = actions.find(({ title }) => title === 'webhook')
    expect(webhook?.properties?.type?.enum).toEqual(['webhook'])
    expect(Object.keys(webhook?.properties ?? {})).toEqual(expect.arrayContaining(['name', 'url', 'headers', 'secret']))
    expect(webhook?.required).toEqual(['type', 'url'])
    expect(webhook?.additionalProperties).toBe(false)
  })

  it('can be written as JSON and read back', () => {
    expect(JSON.parse(JSON.stringify(schema))).toEqual(schema)
  })
})
