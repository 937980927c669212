package cluster

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/state"
)

// A sealed text consists of the version, the salt of the process that sealed it, the number of the text in that process, and the
// text encrypted with AES-256-GCM. The key is derived from the secret and the salt, and the number is the nonce. So no nonce is
// used twice with the same key, however many texts a cluster seals.
const (
	sealVersion = 1
	saltLength  = 16
	sealHead    = 1 + saltLength + 8
)

// sealPurpose must never change, see [state.Secret.Key].
const sealPurpose = "mcpx cluster 1"

var (
	errSeal    = errors.New("it was not sealed with a key of this cluster, or not for this subject")
	errVersion = errors.New("it was sealed by a newer version of mcpx")
	errTwice   = errors.New("it was received before")
)

type salt [saltLength]byte

// box encrypts texts with the first key, and decrypts texts that were encrypted with any of the keys. It may be used by several
// goroutines at the same time.
type box struct {
	keys [][]byte
	own  salt
	aead cipher.AEAD
	last atomic.Uint64

	mu    sync.Mutex
	known map[salt]cipher.AEAD // ciphers for the texts of other processes, by the salt of the process
}

// maxKnown is the maximum length of box.known. Only processes that have a key of this cluster get into known.
const maxKnown = 1000

func newBox(secrets []*state.Secret) *box {
	b := &box{known: make(map[salt]cipher.AEAD)}
	for _, s := range secrets {
		b.keys = append(b.keys, s.Key(sealPurpose))
	}
	_, _ = rand.Read(b.own[:]) // never fails
	b.aead = derive(b.keys[0], b.own)
	return b
}

func derive(key []byte, of salt) cipher.AEAD {
	mac := hmac.New(sha256.New, key)
	mac.Write(of[:])
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		panic(err) // impossible: the key has the right length
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // impossible for AES
	}
	return aead
}

// seal encrypts a text. Only a call of open with the same subject can decrypt it.
func (b *box) seal(subject string, text []byte) []byte {
	sealed := make([]byte, sealHead, sealHead+len(text)+b.aead.Overhead())
	sealed[0] = sealVersion
	copy(sealed[1:], b.own[:])
	binary.BigEndian.PutUint64(sealed[1+saltLength:], b.last.Add(1))
	return b.aead.Seal(sealed, nonce(sealed), text, extra(sealed, subject))
}

func nonce(sealed []byte) []byte {
	return append(make([]byte, 4, 12), sealed[1+saltLength:sealHead]...)
}

func extra(sealed []byte, subject string) []byte { return append([]byte{sealed[0]}, subject...) }

// open decrypts a text that was sealed for this subject. sender is the salt of the process that sealed the text, and number is the
// number of the text in that process.
func (b *box) open(subject string, sealed []byte) (text []byte, sender salt, number uint64, err error) {
	switch {
	case len(sealed) < sealHead:
		return nil, sender, 0, errSeal
	case sealed[0] > sealVersion:
		return nil, sender, 0, errVersion
	}
	copy(sender[:], sealed[1:])
	number = binary.BigEndian.Uint64(sealed[1+saltLength:])
	b.mu.Lock()
	aead := b.known[sender]
	b.mu.Unlock()
	if aead != nil {
		if text, err = aead.Open(nil, nonce(sealed), sealed[sealHead:], extra(sealed, subject)); err != nil {
			return nil, sender, 0, errSeal
		}
		return text, sender, number, nil
	}
	for _, key := range b.keys {
		aead := derive(key, sender)
		if text, err = aead.Open(nil, nonce(sealed), sealed[sealHead:], extra(sealed, subject)); err == nil {
			b.mu.Lock()
			if len(b.known) >= maxKnown {
				clear(b.known)
			}
			b.known[sender] = aead
			b.mu.Unlock()
			return text, sender, number, nil
		}
	}
	return nil, sender, 0, errSeal
}

// windows remembers which numbers were received from each sender, so that a repeated message is refused. A message is also refused
// if its number is lower than the newest number of its sender by windowSize or more. This seldom hits a new message, because NATS
// delivers the messages of a sender nearly in order. Only one goroutine at a time may use a value of this type.
type windows struct {
	of      map[salt]*window
	cleaned time.Time
}

const windowSize = 8192

type window struct {
	newest uint64
	seen   [windowSize / 64]uint64
	at     time.Time
}

// take reports whether a message with this number may be accepted: it returns false if the number was received before, or is too
// old (see [windows]). It forgets a sender that was silent for twice messageAge. A repeated message of this sender is refused then
// because of its age.
func (w *windows) take(sender salt, number uint64, now time.Time) bool {
	if now.Sub(w.cleaned) > messageAge {
		for by, one := range w.of {
			if now.Sub(one.at) > 2*messageAge {
				delete(w.of, by)
			}
		}
		w.cleaned = now
	}
	one := w.of[sender]
	if one == nil {
		one = new(window)
		w.of[sender] = one
	}
	one.at = now
	return one.take(number)
}

func (w *window) take(number uint64) bool {
	if number+windowSize <= w.newest {
		return false
	}
	if number > w.newest+windowSize {
		clear(w.seen[:])
	} else {
		for n := w.newest + 1; n <= number; n++ {
			w.seen[n%windowSize/64] &^= 1 << (n % 64)
		}
	}
	w.newest = max(w.newest, number)
	word, bit := &w.seen[number%windowSize/64], uint64(1)<<(number%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}
