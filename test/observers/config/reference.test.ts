import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { renderSections, replaceSections } from '../../../scripts/reference.mjs'
import { checkOnlyPorts, loadConfigurationFile, toJsonSchema } from '../../../src/observers/index.ts'
import { findBlocks, readPage, root } from '../../markdown.ts'

const pages = ['docs/reference/configuration.md', 'docs/reference/observer-file.md']
const sections = renderSections(toJsonSchema(checkOnlyPorts({}).actionTypes))

describe('the reference of the file', () => {
  it.each(pages)('%s has the tables of the schema; node scripts/write-reference.mjs writes them', (page) => {
    const text = readFileSync(root + page, 'utf8')
    expect(text).toContain('<!-- generated: ')
    expect(text).toBe(replaceSections(text, sections))
  })

  it('has every section on some page', () => {
    const text = pages.map((page) => readFileSync(root + page, 'utf8')).join('\n')
    for (const name of Object.keys(sections)) expect(text).toContain(`<!-- generated: ${name} -->`)
  })

  it('shows only TOML that can be loaded', async () => {
    const blocks = pages.flatMap((page) => findBlocks(readPage(page))).filter(({ language }) => language === 'toml')
    expect(blocks.length).toBeGreaterThan(2)
    const env = {
      DATABASE_URL: 'postgres://db/x',
      SLACK_WEBHOOK_URL: 'https://hooks.example.com/x',
      ERP_SECRET: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
    }
    for (const { page, line, code } of blocks) {
      const text = code.replace(/^include = .*$/m, '')
      const result = await loadConfigurationFile({ text, name: `${page}:${line}` }, checkOnlyPorts(env))
      expect(result.ok ? [] : result.mistakes).toEqual([])
    }
  })
})
