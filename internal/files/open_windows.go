package files

// withoutWaiting is no flag here: on Windows, folders contain no named pipes.
const withoutWaiting = 0
