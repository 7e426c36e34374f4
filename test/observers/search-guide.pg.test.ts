/** The program of docs/guides/search.md, run as it stands there. */
import { expect, it } from 'vitest'
import { findBlocks, readPage } from '../markdown.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { eventually } from '../support/eventually.ts'
import { rulesFile } from './support/search-rules.ts'

it('the program of the guide finds what it has emitted, by the rules of the guide', async () => {
  const toml = findBlocks(readPage('docs/guides/search.md')).find(({ language }) => language === 'toml')
  const { ac } = await openSubscriptions()
  await ac.observers.loadFile(rulesFile(toml!.code))
  await ac.start()
  // #region search
  await ac.transaction(async (tx) => {
    await tx.emit('product.created', {
      aggregate: { type: 'product', id: '42' },
      payload: { name: 'Desk lamp', description: 'For reading in the evening', price: 4990 },
    })
  })

  async function find(text: string) {
    const { hits } = await ac.search.query('products', text, { limit: 10, highlight: true })
    return hits.map(({ id, document, highlight }) => ({ id, title: document.title, html: highlight }))
  }
  // #endregion
  expect(await eventually(async () => (await find('even'))[0])).toEqual({
    id: '42',
    title: 'Desk lamp',
    html: 'Desk lamp\nFor reading in the <mark>evening</mark>',
  })
})
