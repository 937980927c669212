package app

import "mcpx/internal/hosted/audit"

// AuditReport is what [VerifyAudit] found in an audit trail.
type AuditReport = audit.Report

// ErrAuditKey is the error of [VerifyAudit] for a trail with HMACs and no key to check them.
var ErrAuditKey = audit.ErrNeedsKey

// VerifyAudit reads the audit trail at path with all its rotated parts. key is empty for a
// trail without HMACs.
func VerifyAudit(path string, key []byte) (*AuditReport, error) { return audit.Verify(path, key) }
