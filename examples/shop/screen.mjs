/** What the shop prints. Plain lines: they read the same in a terminal, a file and a CI log. */
export function createScreen(stream) {
  const began = performance.now()
  const colour = stream.isTTY && !process.env.NO_COLOR && process.env.TERM !== 'dumb'
  const paint = (code, text) => (colour ? `\u001b[${code}m${text}\u001b[0m` : text)
  const dim = (text) => paint(2, text)
  const write = (line) => stream.write(`${line}\n`)
  const colours = { placed: 36, paid: 32, shipped: 35 }

  return {
    step: (what) => write(dim(`· ${what}`)),
    progress(step) {
      const words = {
        initdb: 'making a new database (first start only)',
        copy: 'copying the binaries',
        adopt: 'joining the server that runs already',
      }
      if (words[step]) write(dim(`· ${words[step]}`))
    },
    ready(server, urls) {
      write('')
      write(`${paint(1, 'aftercommit')} demo shop, ready in ${((performance.now() - began) / 1000).toFixed(1)} s`)
      write(dim(`  PostgreSQL ${server.version} in ${server.dataDir}`))
      write(`  console:           ${paint(36, urls.console)}   see an order arrive, open it, find what waits`)
      write(`  live order screen: ${paint(36, urls.orders)}   place an order, break the courier, mend it`)
      write(dim('  every line below is an event that was committed; Ctrl-C stops'))
      write('')
      write(dim('position  time      event          order     what'))
    },
    event(event) {
      const name = event.type.padEnd(13)
      write(
        [
          String(event.position).padStart(8),
          event.recordedAt.toISOString().slice(11, 19),
          paint(colours[event.type.split('.')[1]], name),
          event.aggregateId,
          describe(event),
        ].join('  '),
      )
    },
    note: (text) => write(dim(`          ${text}`)),
    end: () => write(dim('· stopped')),
  }
}

function describe(event) {
  switch (event.type) {
    case 'order.placed':
      return `${event.payload.customer} for $${(event.payload.total / 100).toFixed(2)}`
    case 'order.paid':
      return `by ${event.payload.method}`
    case 'order.shipped':
      return `by ${event.payload.carrier}`
  }
}
