package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"mcpx/internal/mcptest"
)

// shares checks that two replicas share a session, its end, and a kept result.
func (f *fleet) shares(t *testing.T) {
	t.Helper()
	one, two := f.replicas[0].hosted, f.replicas[1].hosted
	v := visitAt(t, one)
	if said := v.ask(two, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`); !strings.Contains(said, `"result":{}`) {
		t.Errorf("a change of the session: %s", said)
	}
	cut := v.ask(one, execute(2, "fake", "table", `{"rows":3000}`))
	handle := scriptHandle.FindString(cut)
	if said := v.ask(two, execute(3, "mcpx", "read_result", `{"handle":"`+handle+`","offset":2999}`)); !strings.Contains(said, "row 2999") {
		t.Errorf("the result %q at the other replica: %s", handle, said)
	}
	if response, said := fetch(t, http.MethodDelete, one.url, "", "Mcp-Session-Id: "+v.session); response.StatusCode != http.StatusOK {
		t.Errorf("the end of the session: %s %s", response.Status, said)
	}
	mcptest.WaitFor(t, "the end of the session at the other replica", patience, func() bool {
		response := v.post(two, `{"jsonrpc":"2.0","id":4,"method":"ping"}`)
		response.Body.Close()
		return response.StatusCode == http.StatusNotFound
	})
}

// natsToken returns a JWT with these claims, signed in the way of NATS.
func natsToken(t *testing.T, issuer nkeys.KeyPair, claims map[string]any) string {
	t.Helper()
	key, err := issuer.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	claims["iss"], claims["iat"], claims["jti"] = key, time.Now().Unix(), rand.Text()
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT","alg":"ed25519-nkey"}`)) + "." + base64.RawURLEncoding.EncodeToString(mustJSON(t, claims))
	signature, err := issuer.Sign([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// natsAccount returns the config of a NATS server with accounts, and the credentials of a user who may use these subjects.
func natsAccount(t *testing.T, subjects ...string) (config, credentials string) {
	t.Helper()
	pair := func(make func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		one, err := make()
		if err != nil {
			t.Fatal(err)
		}
		public, err := one.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return one, public
	}
	operator, operatorKey := pair(nkeys.CreateOperator)
	_, systemKey := pair(nkeys.CreateAccount)
	account, accountKey := pair(nkeys.CreateAccount)
	user, userKey := pair(nkeys.CreateUser)
	limits := map[string]any{"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1}
	systemToken := natsToken(t, operator, map[string]any{"name": "system", "sub": systemKey, "nats": map[string]any{"type": "account", "version": 2, "limits": limits}})
	stored := map[string]any{"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
	for name, value := range limits {
		stored[name] = value
	}
	accountToken := natsToken(t, operator, map[string]any{"name": "team", "sub": accountKey, "nats": map[string]any{"type": "account", "version": 2, "limits": stored}})
	may := map[string]any{"allow": subjects}
	userToken := natsToken(t, account, map[string]any{"name": "mcpx", "sub": userKey, "nats": map[string]any{
		"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, "pub": may, "sub": may,
	}})
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	config = fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: { %s: %s, %s: %s }",
		natsToken(t, operator, map[string]any{"name": "tests", "sub": operatorKey, "nats": map[string]any{"type": "operator", "version": 2}}),
		systemKey, systemKey, systemToken, accountKey, accountToken)
	credentials = fmt.Sprintf("-----BEGIN NATS USER JWT-----\n%s\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n%s\n------END USER NKEY SEED------\n", userToken, seed)
	return config, credentials
}

// TestReplicas_Credentials: replicas join with a .creds file or its content, as a user who may use only the subjects in
// docs/replicas.md. Without credentials, mcpx does not start and says why.
func TestReplicas_Credentials(t *testing.T) {
	mcptest.Parallel(t)
	config, credentials := natsAccount(t, "mcpx.mcpx.>", "$KV.mcpx.>", "$JS.API.>", "$JS.FC.KV_mcpx.>")
	h := newHome(t)
	f := &fleet{
		nats: mcptest.StartNATS(t, config), servers: map[string]server{"fake": fake(t, mcptest.Spec{})},
		cluster: map[string]any{"credentials": h.write(t, "mcpx.creds", credentials)},
	}
	f.start(t, "replica-1")
	f.cluster["credentials"] = credentials
	f.start(t, "replica-2")
	f.shares(t)
	for _, r := range f.replicas {
		if strings.Contains(r.stderr.String(), "ermission") {
			t.Errorf("a subject is missing in docs/replicas.md: %s", r.stderr.String())
		}
	}
	f.refuses(t, nil, "Authorization")
}

// refuses checks that mcpx does not start with these keys of cluster, and what it says.
func (f *fleet) refuses(t *testing.T, cluster map[string]any, why string) {
	t.Helper()
	h := newHome(t)
	all := map[string]any{"nats": f.nats.URL, "key": "0123456789abcdef0123456789abcdef"}
	for name, value := range cluster {
		all[name] = value
	}
	path := h.config(t, f.servers, map[string]any{"cluster": all})
	if _, stderr, code := h.run(t, "", "serve", "--http", "127.0.0.1:0", "--config", path); code == exitOK || !strings.Contains(stderr, why) {
		t.Errorf("with %v: exit %d, want an error about %s: %s", cluster, code, why, stderr)
	}
}

// TestReplicas_TLS: replicas connect to a NATS whose certificate comes from a private authority, and which requires a certificate
// from mcpx.
func TestReplicas_TLS(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	self := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, self, self, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate := h.write(t, "certificate.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	key := h.write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	f := &fleet{
		nats:    mcptest.StartNATS(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }", certificate, key, certificate)),
		servers: map[string]server{"fake": fake(t, mcptest.Spec{})},
		cluster: map[string]any{"tls": map[string]any{"ca": certificate, "cert": certificate, "key": key}},
	}
	f.startAll(t, 2)
	f.shares(t)
	f.refuses(t, nil, "certificate")
	if mcptest.Full { // takes ten seconds
		f.refuses(t, map[string]any{"tls": map[string]any{"ca": certificate}}, "certificate")
	}
}

// leader returns the server that leads the bucket, and how many servers have it whole; 0 if that is not known now.
func leader(t *testing.T, urls []string) (name string, servers int) {
	t.Helper()
	conn, err := nats.Connect(strings.Join(urls, ","))
	if err != nil {
		return "", 0
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	stream, err := js.Stream(ctx, "KV_mcpx")
	if err != nil {
		return "", 0
	}
	info := stream.CachedInfo()
	for _, one := range info.Cluster.Replicas {
		if one.Current && !one.Offline {
			servers++
		}
	}
	return info.Cluster.Leader, servers + 1
}

// TestReplicas_NATSCluster: NATS is a cluster of three servers. The test kills the leader of the bucket twice, the second time
// the new leader. Sessions go on, and what has to be stored is stored soon after.
func TestReplicas_NATSCluster(t *testing.T) {
	if !mcptest.Full {
		t.Skip("takes half a minute: MCPX_FULL=1")
	}
	all := mcptest.StartNATSCluster(t)
	byName, urls := make(map[string]*mcptest.NATS), []string(nil)
	for i, n := range all {
		byName[fmt.Sprintf("nats-%d", i+1)] = n
		urls = append(urls, n.URL)
	}
	f := &fleet{nats: all[0], servers: map[string]server{"fake": fake(t, mcptest.Spec{})}, cluster: map[string]any{"nats": urls}}
	f.startAll(t, 3)
	f.shares(t)
	before := visitAt(t, f.replicas[0].hosted)
	for range 2 {
		var name string
		mcptest.WaitFor(t, "the bucket is on three servers", patience, func() bool {
			var servers int
			name, servers = leader(t, urls)
			return servers == 3
		})
		t.Logf("%s leads", name)
		byName[name].Kill()
		for _, r := range f.replicas {
			if said := before.ask(r.hosted, execute(1, "fake", "echo", `{"text":"goes on"}`)); !strings.Contains(said, "goes on") {
				t.Errorf("a call at %s: %s", r.name, said)
			}
		}
		began := time.Now()
		for _, r := range f.replicas {
			mcptest.WaitFor(t, "a change is stored by "+r.name, patience, func() bool {
				return strings.Contains(before.ask(r.hosted, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`), `"result":{}`)
			})
		}
		t.Logf("changes are stored again after %v", time.Since(began))
		f.shares(t)
		byName[name].Start()
	}
}
