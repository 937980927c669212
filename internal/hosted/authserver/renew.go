package authserver

import (
	"cmp"
	"context"
	"errors"
	"time"

	"mcpx/internal/base/delay"
)

const (
	// issuerTime is how long the issuer may take to renew a login. The client waits for the renewal.
	issuerTime = 10 * time.Second
	// A request waits at most renewingTime for other requests that renew the same login; after that it fails with errAway. Its own
	// renewal takes at most askedTime. Meanwhile it has a lease: for leaseTime, other requests must not renew the login. leaseTime
	// is more than a minute longer than askedTime, because the clocks of replicas may differ by a minute. The lease runs out only
	// if a process dies during a renewal.
	renewingTime = 3 * issuerTime
	askedTime    = 2 * issuerTime
	leaseTime    = renewingTime + time.Minute
)

var (
	errEnded = &fault{"invalid_grant", "the login has ended: log in again"}
	errTwice = &fault{"invalid_grant", "the refresh token was used before: log in again"}
	// errAway is the answer if the issuer cannot be asked, or if another request takes too long to ask it. The login stays valid,
	// because an issuer that is down for a moment must not log out a company. But the client gets no new access token, and its old
	// one expires after accessTime. So nobody uses mcpx for long without the issuer's agreement.
	errAway = &fault{"temporarily_unavailable", "the login issuer cannot be asked now; try again"}
	errBusy = errors.New("another request renews the login")
)

// renewed asks the issuer whether the user may stay logged in, stores the answer, and returns the renewed login. Before it asks, it
// calls accept with the newest state of the login. accept may change this state. If accept returns an error, the issuer is not
// asked, and renewed returns that error. Only errNothing is different: it means that another request has just renewed the login,
// and renewed returns the login without an error. If accept ends the login, which it does when a refresh token was used twice,
// renewed returns errTwice.
//
// If several requests renew one login, in this process or in others, only one of them asks the issuer. Each of the others waits for
// it, and then calls its own accept with the new state.
func (s *Server) renewed(ctx context.Context, number string, accept func(*grant) error) (*grant, error) {
	// When the issuer has answered, its old refresh token may be worth nothing. So the answer is stored even if the client does not
	// wait for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewingTime)
	defer cancel()
	me := random()
	for {
		e := s.find(number)
		g, err := s.change(ctx, number, func(g *grant) error {
			g.Quiet = g.Quiet && g.Renewing != "" && !expired(g.RenewingUntil)
			switch err := accept(g); {
			case err != nil:
				return err
			case g.Ended != "": // accept has ended the login
				return nil
			case g.Renewing != "" && !expired(g.RenewingUntil):
				return errBusy
			}
			g.Renewing, g.RenewingUntil = me, deadline(leaseTime)
			return nil
		})
		switch {
		case errors.Is(err, errBusy):
			if changes(ctx, e) != nil {
				return nil, errAway
			}
		case errors.Is(err, errNothing):
			return g, nil
		case errors.Is(err, errUnknown):
			return nil, errEnded
		case err != nil:
			return nil, err
		case g.Ended != "":
			s.ended(g)
			return nil, errTwice
		default:
			return s.asked(ctx, g, me)
		}
	}
}

// lookAgain is how long a request waits for another request that renews the same login, before it looks at the store again. It
// usually waits less, because the store reports the change through learn.
const lookAgain = 250 * time.Millisecond

// changes waits until a newer entry replaces e, at most for lookAgain. If e is nil, changes waits for lookAgain. It returns an
// error only if ctx has ended.
func changes(ctx context.Context, e *entry) error {
	var changed <-chan struct{}
	if e != nil {
		changed = e.changed
	}
	delay.Until(ctx, lookAgain, changed, nil)
	return ctx.Err()
}

// asked asks the issuer whether the user of a login may stay logged in, stores the answer, and returns the renewed login. me
// identifies this request: the stored login must still have it in the field Renewing, else the answer is dropped.
func (s *Server) asked(ctx context.Context, of *grant, me string) (*grant, error) {
	// The wait for other requests may have used up most of ctx's time. If the issuer's answer is cut off, the login can be lost. So
	// asking has a time limit of its own, askedTime.
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), askedTime)
	defer end()
	asking, cancel := context.WithTimeout(ctx, issuerTime)
	got, who, asks := s.oidc.again(asking, &of.Issued, &of.Who)
	cancel()
	if asks == nil {
		asks = s.nameFree(who)
	}
	refused, isRefused := errors.AsType[*refusedError](asks)
	g, err := s.change(ctx, of.Number, func(g *grant) error {
		if g.Ended != "" || g.Renewing != me {
			return errNothing
		}
		g.Renewing, g.RenewingUntil, g.Issued = "", 0, *got
		switch {
		case isRefused:
			g.end(refused.why)
		case asks == nil:
			g.Who, g.Renewed, g.Until = *who, time.Now().Unix(), s.until(g)
			if !g.Quiet {
				g.Next, g.Done = g.Next+1, time.Now().UnixMilli()
			}
			g.Quiet = false
		}
		return nil
	})
	switch {
	case errors.Is(err, errNothing), errors.Is(err, errUnknown):
		return nil, errEnded
	case err != nil:
		return nil, err
	case isRefused:
		s.ended(g)
		return nil, &fault{"invalid_grant", refused.why + ": log in again"}
	case asks != nil:
		s.o.Log.Error("a login cannot be renewed at the issuer; it goes on, without new tokens", "principal", s.principal(&of.Who).Name, "error", asks)
		return nil, errAway
	}
	return g, nil
}

// minGiven is for IssuerToken: it renews the login if the issuer's newest access token is valid for less than minGiven.
const minGiven = 30 // seconds

// IssuerToken returns the newest access token that the issuer has given for a login. If this token ends within minGiven,
// IssuerToken first renews the login to get a new one. The caller must not send the token to clients.
func (s *Server) IssuerToken(ctx context.Context, number string) (string, error) {
	good := func(g *grant) bool { return g.Issued.Given != "" && !expired(g.Issued.GivenUntil-minGiven) }
	e := s.find(number)
	switch {
	case e == nil || e.Ended != "":
		return "", errEnded
	case good(e.grant):
		return e.Issued.Given, nil
	case e.Issued.Refresh == "":
		return "", errors.New("the issuer's token of the login has ended, and the issuer gave nothing to renew it with: log in again")
	}
	g, err := s.renewed(ctx, number, func(g *grant) error {
		if g.Ended == "" && good(g) {
			return errNothing
		}
		if g.Renewing == "" || expired(g.RenewingUntil) {
			g.Quiet = true
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return g.Issued.Given, nil
}

// until returns when a login ends if it is not renewed before, in Unix seconds.
func (s *Server) until(g *grant) int64 {
	most := grantTime
	if g.Client == "" {
		most = pageLogin
	}
	until := min(deadline(refreshTime), time.Unix(g.Began, 0).Add(most).Unix())
	if g.Issued.Refresh == "" {
		until = min(until, cmp.Or(g.Issued.AccessUntil, deadline(accessTime)))
	}
	return until
}
