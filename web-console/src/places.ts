/** Every page: its address, its name, and the key that follows `g`. */
export const PAGES = [
  ['', 'Overview', 'o'],
  ['events', 'Events', 'e'],
  ['subscriptions', 'Subscriptions', 's'],
  ['observers', 'Observers', 'b'],
  ['workflows', 'Workflows', 'w'],
  ['deliveries', 'Deliveries', 'l'],
  ['dead-letters', 'Dead letters', 'd'],
  ['database', 'Database', 'p'],
  ['audit', 'Audit', 'a'],
] as const
