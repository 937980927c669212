package files

// withoutWaiting is not needed: named pipes are not in folders.
const withoutWaiting = 0
